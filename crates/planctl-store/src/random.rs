//! Random bits from the kernel: tokens, command ids, names of processes.

use planctl_engine::hex;
use rustix::rand::{GetRandomFlags, getrandom};
use uuid::Uuid;

/// Fills 32 bytes from the kernel's generator.
pub(crate) fn bytes() -> [u8; 32] {
    let mut bytes = [0u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(error) if error == rustix::io::Errno::INTR => {}
            Err(error) => panic!("the kernel has no random numbers: {error}"),
        }
    }
    bytes
}

/// Draws 256 bits, as hexadecimal digits.
pub fn secret() -> String {
    hex(&bytes())
}

/// Draws 64 bits, as hexadecimal digits.
pub(crate) fn digits() -> String {
    hex(&bytes()[..8])
}

/// Draws a UUID without meaning.
pub(crate) fn uuid() -> Uuid {
    let bytes = bytes();
    let mut half = [0u8; 16];
    half.copy_from_slice(&bytes[..16]);
    uuid::Builder::from_random_bytes(half).into_uuid()
}

/// Draws a UUID that sorts by age; `millis` is the database's time.
pub(crate) fn uuid_at(millis: u64) -> Uuid {
    let bytes = bytes();
    let mut tail = [0u8; 10];
    tail.copy_from_slice(&bytes[..10]);
    uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

//! Names bytes by their sha256, as plans, evidence and outputs do.

use std::fs::File;
use std::io::{self, Read};

use planctl_engine::Digest;
use sha2::{Digest as _, Sha256};

/// Returns `sha256:` and the hexadecimal digest of the bytes.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest::of_sha256(&Sha256::digest(bytes))
}

/// Digests an open file to its end in constant memory, and takes its bytes off those that may still be read; `None` where
/// it has more.
pub(crate) fn digest_within(file: &File, left: &mut u64) -> io::Result<Option<Digest>> {
    // A sparse file says a length that takes hours to read.
    if file.metadata()?.len() > *left {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut file = file;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Some(Digest::of_sha256(&hasher.finalize()))),
            Ok(count) => match left.checked_sub(count as u64) {
                Some(rest) => {
                    *left = rest;
                    hasher.update(&buffer[..count]);
                }
                None => return Ok(None),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_one_everybody_computes() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest_of(b"").as_str(), empty);
        let nothing = digest_within(&File::open("/dev/null").unwrap(), &mut 0).unwrap();
        assert_eq!(nothing.unwrap().as_str(), empty);
    }

    #[test]
    fn b4_no_more_is_read_than_may_be() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"abc").unwrap();
        let digest = |left: &mut u64| {
            std::io::Seek::rewind(&mut &file).unwrap();
            digest_within(&file, left).unwrap()
        };
        let mut left = 5;
        assert_eq!((digest(&mut left), left), (Some(digest_of(b"abc")), 2));
        assert_eq!((digest(&mut left), left), (None, 2));
        // It never ends, although its metadata gives a length.
        let endless = File::open("/dev/zero").unwrap();
        assert_eq!(digest_within(&endless, &mut (1 << 20)).unwrap(), None);
    }
}

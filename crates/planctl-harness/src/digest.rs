//! Names bytes by their sha256, as plans, evidence and outputs do.

use std::fs::File;
use std::io::{self, Read};

use planctl_engine::Digest;
use sha2::{Digest as _, Sha256};

/// Returns `sha256:` and the hexadecimal digest of the bytes.
pub fn digest_of(bytes: &[u8]) -> Digest {
    name(Sha256::digest(bytes).as_slice())
}

/// Digests an open file to its end in constant memory.
pub(crate) fn digest_of_file(mut file: File) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(name(hasher.finalize().as_slice())),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn name(digest: &[u8]) -> Digest {
    let mut text = String::with_capacity(7 + 64);
    text.push_str("sha256:");
    for byte in digest {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(half), 16).expect("four bits are one hexadecimal digit"));
        }
    }
    Digest::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_one_everybody_computes() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest_of(b"").as_str(), empty);
        assert_eq!(digest_of_file(File::open("/dev/null").unwrap()).unwrap().as_str(), empty);
    }
}

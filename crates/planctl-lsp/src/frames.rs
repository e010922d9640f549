//! Messages on a byte stream: `Content-Length` headers, an empty line, then JSON.
//!
//! A message that is no JSON is handed on as such, so that one bad message does not end the conversation.

use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

const HEADER_BYTES_MAX: u64 = 8 * 1024;
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The content of one frame.
#[derive(Clone, PartialEq, Debug)]
pub enum Frame {
    /// JSON.
    Json(Value),
    /// Something else, and what is wrong with it.
    Malformed(String),
}

/// Reads the next frame; `None` at the end of the stream.
///
/// # Errors
///
/// Where the stream breaks off, or its headers don't tell where the message ends: nothing after that can be read.
pub fn read(input: &mut impl BufRead) -> io::Result<Option<Frame>> {
    let Some(length) = read_headers(input)? else { return Ok(None) };
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(match planctl_harness::read_foreign_json(&body) {
        Ok(json) => Frame::Json(json),
        Err(error) => Frame::Malformed(error.to_string()),
    }))
}

fn read_headers(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        let read = input.take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 && is_first {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(invalid("a header is not ended"));
        }
        is_first = false;
        let line = String::from_utf8_lossy(&line);
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if !line.trim().is_empty() {
                return Err(invalid("a header has no colon"));
            }
            return length.map(Some).ok_or_else(|| invalid("there is no Content-Length"));
        };
        if name.eq_ignore_ascii_case("content-length") {
            let bytes = value.trim().parse().ok().filter(|bytes| *bytes <= MESSAGE_BYTES_MAX);
            length = Some(bytes.ok_or_else(|| invalid("the Content-Length is not a number up to 64 MiB"))?);
        }
    }
}

/// Writes one message.
///
/// # Errors
///
/// Where the stream does not take it.
pub fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

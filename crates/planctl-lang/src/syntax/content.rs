//! The kind of a file that is no plan text, as far as its bytes tell, and the way to make a plan of it.

use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, shell_word};

/// How much of a file is looked at where all of it would be needless.
const HEAD_BYTES: usize = 4096;

/// A kind of content, and the advice about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    what: String,
    help: String,
}

impl Content {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Content {
        Content { what: what.into(), help: help.into() }
    }

    /// Returns the finding, at the start of the file.
    pub(crate) fn finding(self, at: Span, label: &str) -> Diagnostic {
        let message = format!("the file is {}, not the text of a plan", self.what);
        Diagnostic::new(Code::P003, message).at(at, label).help(self.help)
    }
}

/// Recognizes bytes that are no UTF-8 text; `path` is for the commands that help.
pub(crate) fn recognize_bytes(path: &str, bytes: &[u8]) -> Option<Content> {
    let file = shell_word(path);
    if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) {
        let what = format!("{} NUL bytes and nothing else", bytes.len());
        let help = "it was never written to its end, as after a crash or on a full disk; restore it from a backup or from git";
        return Some(Content::new(what, help));
    }
    if let Some((encoding, name)) = wide_encoding(bytes) {
        let help = format!("convert it: `iconv -f {encoding} -t UTF-8 {file} > plan-utf8.md`");
        return Some(Content::new(format!("{name} text"), help));
    }
    archive(&file, bytes).or_else(|| document(&file, bytes)).or_else(|| program(bytes))
}

// A byte order mark says it; else the NUL bytes of ASCII letters stand in every second or fourth place.
fn wide_encoding(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => return Some(("UTF-32", "UTF-32 (little-endian)")),
        [0, 0, 0xfe, 0xff, ..] => return Some(("UTF-32", "UTF-32 (big-endian)")),
        [0xff, 0xfe, ..] => return Some(("UTF-16", "UTF-16 (little-endian)")),
        [0xfe, 0xff, ..] => return Some(("UTF-16", "UTF-16 (big-endian)")),
        _ => {}
    }
    let head = &bytes[..bytes.len().min(HEAD_BYTES) / 4 * 4];
    if head.len() < 8 {
        return None;
    }
    let mut nul = [0_usize; 4];
    for (at, byte) in head.iter().enumerate() {
        nul[at % 4] += usize::from(*byte == 0);
    }
    let quarter = head.len() / 4;
    let is_nul = nul.map(|count| count * 10 >= quarter * 7);
    let is_free = nul.map(|count| count * 10 <= quarter);
    match (is_nul, is_free) {
        ([_, true, true, true], [true, ..]) => Some(("UTF-32LE", "UTF-32 (little-endian)")),
        ([true, true, true, _], [.., true]) => Some(("UTF-32BE", "UTF-32 (big-endian)")),
        ([_, true, _, true], [true, _, true, _]) => Some(("UTF-16LE", "UTF-16 (little-endian)")),
        ([true, _, true, _], [_, true, _, true]) => Some(("UTF-16BE", "UTF-16 (big-endian)")),
        _ => None,
    }
}

fn archive(file: &str, bytes: &[u8]) -> Option<Content> {
    let unpack = |program: &str| format!("unpack it first: `{program} < {file} > plan.md`");
    let (what, help) = match bytes {
        [0x1f, 0x8b, ..] => ("compressed by gzip", unpack("gunzip -c")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("compressed by zstd", unpack("zstd -dc")),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => ("compressed by xz", unpack("xz -dc")),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
            ("compressed by bzip2", unpack("bzip2 -dc"))
        }
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => {
            ("a 7-Zip archive", format!("unpack it first: `7z x {file}`"))
        }
        [b'P', b'K', 3, 4, ..] => return Some(zip(file, bytes)),
        _ if bytes.get(257..262) == Some(b"ustar") => {
            ("a tar archive", format!("unpack it first: `tar -xf {file}`"))
        }
        _ => return None,
    };
    Some(Content::new(what, help))
}

// Office documents are zip archives whose first entries tell.
fn zip(file: &str, bytes: &[u8]) -> Content {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let holds = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    let to_markdown = format!("save it as Markdown, or convert it: `pandoc -t gfm -o plan.md {file}`");
    if holds(b"opendocument.text") {
        return Content::new("an OpenDocument text", to_markdown);
    }
    if holds(b"word/") || (holds(b"[Content_Types].xml") && has_ending(file, "docx")) {
        return Content::new("a Word document", to_markdown);
    }
    if holds(b"[Content_Types].xml") {
        return Content::new(
            "an Office document",
            "write the plan as Markdown, in a file that ends with `.md`",
        );
    }
    Content::new("a zip archive", format!("unpack it first: `unzip {file}`"))
}

fn has_ending(file: &str, ending: &str) -> bool {
    let name = file.trim_end_matches('\'');
    name.rsplit_once('.').is_some_and(|(_, found)| found.eq_ignore_ascii_case(ending))
}

fn document(file: &str, bytes: &[u8]) -> Option<Content> {
    let picture = "a plan is text: write it as Markdown, and name the picture in a task";
    let (what, help) = match bytes {
        [b'%', b'P', b'D', b'F', b'-', ..] => {
            ("a PDF document", format!("take its text, and make a plan of it: `pdftotext {file} plan.md`"))
        }
        [b'{', b'\\', b'r', b't', b'f', ..] => (
            "an RTF document",
            format!("save it as Markdown, or convert it: `pandoc -t gfm -o plan.md {file}`"),
        ),
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => {
            ("an old Office document", "save it as Markdown or plain text".to_owned())
        }
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, ..] => ("a PNG picture", picture.to_owned()),
        [0xff, 0xd8, 0xff, ..] => ("a JPEG picture", picture.to_owned()),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ("a GIF picture", picture.to_owned()),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            ("a WebP picture", picture.to_owned())
        }
        _ => return None,
    };
    Some(Content::new(what, help))
}

fn program(bytes: &[u8]) -> Option<Content> {
    let what = match bytes {
        [0x7f, b'E', b'L', b'F', ..] => "a program (ELF)",
        [b'M', b'Z', _, 0, ..] => "a Windows program",
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] => "a macOS program",
        [0, b'a', b's', b'm', ..] => "a WebAssembly module",
        [b'S', b'Q', b'L', b'i', b't', b'e', b' ', b'f', b'o', b'r', b'm', b'a', b't', b' ', b'3', 0, ..] => {
            "an SQLite database"
        }
        _ => return None,
    };
    Some(Content::new(what, "name the Markdown file that holds the plan"))
}

/// Recognizes text in another language that plans are taken for: HTML, XML, JSON, YAML, a script.
pub(crate) fn recognize_text(path: &str, text: &str) -> Option<Content> {
    let body = text.trim_start_matches('\u{feff}').trim_start();
    let head: String = body.chars().take(64).flat_map(char::to_lowercase).collect();
    let starts = |with: &[&str]| with.iter().any(|start| head.starts_with(start));
    if starts(&["<!doctype html", "<html", "<head", "<body"]) {
        let help = format!(
            "save the page's source as Markdown, or convert it: `pandoc -f html -t gfm -o plan.md {}`",
            shell_word(path)
        );
        return Some(Content::new("HTML", help));
    }
    if starts(&["<?xml", "<svg"]) {
        return Some(Content::new("XML", "write the plan as Markdown, as `planctl new` does"));
    }
    if body.starts_with("#!") {
        let help = "a script can be the contract of a step: write a plan that runs it";
        return Some(Content::new("a script", help));
    }
    if starts(&["version https://git-lfs"]) {
        return Some(Content::new("a pointer of Git LFS", "fetch the content it stands for: `git lfs pull`"));
    }
    if body.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok() {
        let help =
            "a plan is Markdown: the frontmatter, then headings and fields, as `planctl new` writes them";
        return Some(Content::new("JSON", help));
    }
    is_yaml(body).then(|| {
        let help =
            "only the frontmatter of a plan is YAML; the steps are Markdown, as `planctl new` writes them";
        Content::new("YAML", help)
    })
}

// Every line is a key, an item, a comment or indented, and more is said than the frontmatter of a plan has.
fn is_yaml(body: &str) -> bool {
    let mut keys = 0;
    let mut is_more = false;
    let mut is_block = false;
    for line in body.lines() {
        let text = line.trim_end();
        if text.is_empty() || text.starts_with('#') && !text.starts_with("##") {
            continue;
        }
        if text.starts_with([' ', '\t']) {
            is_more |= is_block;
            continue;
        }
        let is_item = text == "-" || text.starts_with("- ");
        if text == "---" || text == "..." || (is_item && is_block) {
            continue;
        }
        let Some((key, value)) = text.split_once(':') else { return false };
        let is_key =
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !is_key || !(value.is_empty() || value.starts_with(' ')) {
            return false;
        }
        is_block = value.trim().is_empty() || value.trim_start().starts_with(['|', '>']);
        keys += 1;
    }
    keys > 0 && is_more
}

/// Says what a byte that is no UTF-8 probably was meant to be, and how to convert the file.
pub(crate) fn guess(path: &str, bytes: &[u8], at: usize) -> Option<(char, String)> {
    let byte = *bytes.get(at)?;
    let follows = bytes.get(at + 1).copied().unwrap_or(b' ');
    // A byte of Windows-1252 or Latin-1 stands alone among ASCII.
    if !(0x80..=0xff).contains(&byte) || (0x80..0xc0).contains(&follows) {
        return None;
    }
    let meant = match byte {
        0x80 => '€',
        0x85 => '…',
        0x91 => '‘',
        0x92 => '’',
        0x93 => '“',
        0x94 => '”',
        0x96 => '–',
        0x97 => '—',
        0xa0..=0xff => char::from(byte),
        _ => return None,
    };
    let encoding = if byte < 0xa0 { "WINDOWS-1252" } else { "ISO-8859-1" };
    Some((meant, format!("convert it: `iconv -f {encoding} -t UTF-8 {} > plan-utf8.md`", shell_word(path))))
}

//! Invisible parts of a plan: hidden characters, files that are no text, and bytes that are no UTF-8.

use crate::sample::{PLAN, facts, found, is_verified, with};
use planctl_lang::Code::{P003, P004};
use planctl_lang::{
    Diagnostic, Levels, Reach, Severity, Source, Verification, apply_fixes, render_all, verify,
};

/// Returns the one finding of a file that is no plan.
fn refused(path: &str, bytes: &[u8]) -> Diagnostic {
    let unreadable = Source::from_bytes(path, bytes.to_vec()).expect_err("this is no plan");
    let verification = Verification::unreadable(&unreadable);
    assert_eq!(verification.diagnostics.len(), 1);
    let finding = verification.diagnostics[0].clone();
    assert_eq!((finding.code, finding.level), (P003, Severity::Error));
    finding
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

fn utf32(text: &str, to_bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
    text.chars().map(u32::from).flat_map(to_bytes).collect()
}

#[test]
fn row_60_text_in_wide_encodings_is_named_with_or_without_its_mark() {
    let marked = format!("\u{feff}{PLAN}");
    let files = [
        ("UTF-16 (little-endian)", "-f UTF-16 ", utf16(&marked, u16::to_le_bytes)),
        ("UTF-16 (big-endian)", "-f UTF-16 ", utf16(&marked, u16::to_be_bytes)),
        ("UTF-16 (little-endian)", "-f UTF-16LE ", utf16(PLAN, u16::to_le_bytes)),
        ("UTF-16 (big-endian)", "-f UTF-16BE ", utf16(PLAN, u16::to_be_bytes)),
        ("UTF-32 (little-endian)", "-f UTF-32 ", utf32(&marked, u32::to_le_bytes)),
        ("UTF-32 (big-endian)", "-f UTF-32 ", utf32(&marked, u32::to_be_bytes)),
        ("UTF-32 (little-endian)", "-f UTF-32LE ", utf32(PLAN, u32::to_le_bytes)),
        ("UTF-32 (big-endian)", "-f UTF-32BE ", utf32(PLAN, u32::to_be_bytes)),
    ];
    for (name, option, bytes) in files {
        let finding = refused("my plan.md", &bytes);
        assert_eq!(finding.message, format!("the file is {name} text, not the text of a plan"));
        let help = finding.help.expect("a command to type");
        assert!(help.contains(&format!("iconv {option}-t UTF-8 'my plan.md' > ")), "{help}");
    }
}

#[test]
fn row_60_files_that_are_no_text_are_named_by_what_they_are() {
    let tar: Vec<u8> = [b"plan.md".as_slice(), &[0; 250], b"ustar\0"].concat();
    let files: [(&[u8], &str, &str); 19] = [
        (b"\x1f\x8b\x08\0rest", "compressed by gzip", "gunzip -c < p.md > plan.md"),
        (b"\x28\xb5\x2f\xfdrest", "compressed by zstd", "zstd -dc < p.md"),
        (b"\xfd7zXZ\0rest", "compressed by xz", "xz -dc < p.md"),
        (b"BZh91AY&SYrest", "compressed by bzip2", "bzip2 -dc < p.md"),
        (b"7z\xbc\xaf\x27\x1crest", "a 7-Zip archive", "7z x p.md"),
        (&tar, "a tar archive", "tar -xf p.md"),
        (b"PK\x03\x04plan.md", "a zip archive", "unzip p.md"),
        (
            b"PK\x03\x04[Content_Types].xml word/document.xml",
            "a Word document",
            "pandoc -t gfm -o plan.md p.md",
        ),
        (b"PK\x03\x04mimetypeapplication/vnd.oasis.opendocument.text", "an OpenDocument text", "pandoc"),
        (b"%PDF-1.7\nx", "a PDF document", "pdftotext p.md plan.md"),
        (b"{\\rtf1\\ansi x}", "an RTF document", "pandoc"),
        (b"\x89PNG\r\n\x1a\n", "a PNG picture", "name the picture in a task"),
        (b"\xff\xd8\xff\xe0", "a JPEG picture", "name the picture in a task"),
        (b"\x7fELF\x02\x01", "a program (ELF)", "name the Markdown file"),
        (b"<!DOCTYPE html>\n<p>x", "HTML", "pandoc -f html"),
        (b"\n{\"steps\": []}\n", "JSON", "a plan is Markdown"),
        (b"name: x\nsteps:\n  - run: y\n", "YAML", "only the frontmatter of a plan is YAML"),
        (b"#!/bin/sh\ntrue\n", "a script", "write a plan that runs it"),
        (&[0; 40], "40 NUL bytes and nothing else", "never written to its end"),
    ];
    for (bytes, what, help) in files {
        let finding = refused("p.md", bytes);
        assert_eq!(finding.message, format!("the file is {what}, not the text of a plan"));
        assert!(finding.help.as_deref().unwrap().contains(help), "{what}: {:?}", finding.help);
    }
    // A plan whose parts look like one of these is a plan.
    for text in [
        with("Make `one.txt`.", "{\"a\": 1}"),
        with("Make `one.txt`.", "<html>"),
        with("owner:", "x: y\nowner:"),
    ] {
        assert!(is_verified(&text), "{text}");
    }
}

#[test]
fn row_60_a_byte_that_is_no_utf8_is_placed_and_guessed() {
    let text = PLAN.replace("A plan for tests.", "Un plan sign\u{1}.");
    let at = text.find('\u{1}').unwrap();
    let latin = |byte| text.bytes().map(|found| if found == 1 { byte } else { found }).collect::<Vec<u8>>();
    for (byte, meant, encoding) in [(0xe9, 'é', "ISO-8859-1"), (0x92, '’', "WINDOWS-1252")] {
        let finding = refused("p.md", &latin(byte));
        assert_eq!(
            finding.message,
            format!("the file is not UTF-8: byte 0x{byte:02X} at offset {at}, line 9")
        );
        assert_eq!(finding.notes, [format!("in Latin-1 or Windows-1252 this byte is `{meant}`")]);
        let help = finding.help.unwrap();
        assert!(help.contains(&format!("iconv -f {encoding} -t UTF-8 p.md > ")), "{help}");
    }
    let mut cut = PLAN.as_bytes().to_vec();
    cut.extend([0xe2, 0x82]);
    assert!(refused("p.md", &cut).notes[0].contains("cut off"));
}

#[test]
fn a_hidden_character_is_named_pointed_to_and_never_printed() {
    let hidden = [
        ('\u{202e}', "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ('\u{2066}', "U+2066 LEFT-TO-RIGHT ISOLATE"),
        ('\u{200b}', "U+200B ZERO WIDTH SPACE"),
        ('\u{feff}', "U+FEFF ZERO WIDTH NO-BREAK SPACE (byte order mark)"),
        ('\u{e0041}', "U+E0041 TAG of `A`"),
        ('\u{3164}', "U+3164 HANGUL FILLER"),
        ('\u{1b}', "U+001B ESCAPE"),
    ];
    let places =
        ["# Make", "**Context:** A", "### 1. Make", "**target:** co", "- file:one", "test -f o", "Make `two"];
    for (character, name) in hidden {
        for place in places {
            for newline in ["\n", "\r\n"] {
                let text = with(place, &format!("{place}{character}")).replace('\n', newline);
                let source = Source::new("p\u{202e}.md", &*text);
                let verification = verify(&source, &facts(), &Levels::default());
                let finding = verification
                    .diagnostics
                    .iter()
                    .find(|found| found.code == P004 && found.message.starts_with(name))
                    .unwrap_or_else(|| panic!("{name} after {place}"));
                assert_eq!(source.slice(finding.spans[0].span), character.to_string());
                let drawn = render_all(&verification.diagnostics, &source, false);
                assert!(!drawn.contains(character) && !drawn.contains('\u{202e}'), "{name} in\n{drawn}");
                let diagnostics = serde_json::to_string(&verification.report(&source).diagnostics).unwrap();
                assert!(!diagnostics.contains(character), "{name} in\n{diagnostics}");
            }
        }
    }
}

#[test]
fn the_same_hidden_character_is_reported_once_for_a_line_and_taken_away_everywhere() {
    let text = with("Make `one.txt`.", "\u{200b}Make\u{200b} `one\u{200b}.txt`.");
    let all: Vec<_> = found(&text).into_iter().filter(|found| found.code == P004).collect();
    assert_eq!((all.len(), all[0].spans.len()), (1, 3));
    let fix = all[0].fix.as_ref().expect("what shows as nothing can go");
    assert!(fix.safe);
    let mut mended = text.clone();
    for edit in fix.edits.iter().rev() {
        mended.replace_range(edit.span.start..edit.span.end, &edit.replacement);
    }
    assert_eq!(mended, PLAN);
}

#[test]
fn emoji_and_other_scripts_are_how_people_write() {
    let titles = [
        "👩\u{200d}💻 и code ❤\u{fe0f}",
        "修复登录超时",
        "می\u{200c}خواهم",
        "إصلاح الخطأ",
        "Größe ändern",
        "🏳\u{fe0f}\u{200d}🌈",
    ];
    for title in titles {
        let text = with("### 1. Make one", &format!("### 1. {title}"))
            .replace("Make `one.txt`.", &format!("{title}: make `one.txt`."));
        assert_eq!(found(&text), [], "{title}");
    }
}

#[test]
fn words_of_the_format_that_only_look_right_are_named_and_mended() {
    for (right, wrong, names) in [
        ("**target:** coder", "**t\u{430}rget:** coder", "U+0430 (a Cyrillic letter) looks like `a`"),
        ("**Priority:** high", "**Pri\u{3bf}rity:** high", "U+03BF (a Greek letter) looks like `o`"),
        ("type: plan", "typ\u{435}: plan", "U+0435 (a Cyrillic letter) looks like `e`"),
        ("type: plan", "type: pl\u{430}n", "U+0430 (a Cyrillic letter) looks like `a`"),
        ("status: draft", "status: dr\u{430}ft", "U+0430 (a Cyrillic letter) looks like `a`"),
        ("## Steps", "## St\u{435}ps", "U+0435 (a Cyrillic letter) looks like `e`"),
        ("### 2. Make two", "### \u{ff12}. Make two", "U+FF12 (a full-width character) looks like `2`"),
    ] {
        let text = with(right, wrong);
        let all = found(&text);
        let named: Vec<_> = all.iter().filter(|found| found.code == P004).collect();
        assert_eq!(named.len(), 1, "{wrong}: {all:?}");
        assert!(named[0].message.ends_with(names), "{}", named[0].message);
        let mended = apply_fixes(&Source::new("p", text), &all, Reach::Safe).unwrap();
        assert_eq!(mended, PLAN);
    }
    let script = found(&with("test -f one.txt", "t\u{435}st -f one.txt"));
    assert!(
        script.iter().any(
            |found| found.message == "U+0435 (a Cyrillic letter) looks like `e` but is another character"
        )
    );
    assert!(found(&with("owner: orchestrator", "owner: \u{430}da")).iter().any(|found| found.code == P004));
}

#[test]
fn letters_that_look_latin_are_refused_and_those_of_other_words_are_not() {
    for script in
        ["test -f \u{43e}ne.txt", "t\u{435}st -f one.txt", "test -f \u{1d41a}ne.txt", "test -f on\u{3bf}.txt"]
    {
        let all = found(&with("test -f one.txt", script));
        assert!(all.iter().any(|found| found.code == P004), "{script}: {all:?}");
    }
    for script in ["test -f Größe.txt", "test -f API仕様.md", "test -f отчёт.md", "grep -q Δx f"] {
        let all = found(&with("test -f one.txt", script));
        assert!(!all.iter().any(|found| found.code == P004), "{script}: {all:?}");
    }
}

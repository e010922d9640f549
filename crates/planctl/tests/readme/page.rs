//! A page of text and fences, and what of it is typed and shown.

/// A page, taken apart; its pieces put together are the page again.
pub struct Page {
    pub pieces: Vec<Piece>,
}

pub enum Piece {
    /// Anything but a fence, and fences of text that nobody types.
    Text(String),
    /// A `console` fence that is run.
    Transcript {
        /// The line of the page where it opens, from 1.
        line: usize,
        opening: String,
        turns: Vec<Turn>,
        closing: String,
    },
}

/// One command and what it shows.
pub struct Turn {
    /// As the page has it, with `$ ` and its line ends.
    pub typed: String,
    /// The text for bash.
    pub command: String,
    pub shown: String,
}

/// Fences of these languages hold what people type.
const TYPED: [&str; 5] = ["console", "sh", "bash", "shell", "zsh"];

impl Page {
    /// Takes a page apart; says of each fence that is neither run nor excused where it is.
    pub fn read(text: &str) -> Result<Page, Vec<String>> {
        let (mut pieces, mut wrong) = (Vec::new(), Vec::new());
        let mut lines = text.split_inclusive('\n').enumerate();
        while let Some((at, opening)) = lines.next() {
            let Some((ticks, info)) = fence(opening) else {
                push(&mut pieces, opening);
                continue;
            };
            let (mut inside, mut closing) = (Vec::new(), String::new());
            for (_, line) in lines.by_ref() {
                if fence(line).is_some_and(|(more, info)| more >= ticks && info.is_empty()) {
                    closing = line.to_owned();
                    break;
                }
                inside.push(line);
            }
            let language = info.split(' ').next().unwrap_or_default();
            let excuse = info.split_once("no-run:").map(|(_, reason)| reason.trim());
            match (TYPED.contains(&language), excuse) {
                (true, None) if language == "console" => match turns(&inside) {
                    Ok(turns) => {
                        let opening = opening.to_owned();
                        pieces.push(Piece::Transcript { line: at + 1, opening, turns, closing });
                    }
                    Err(what) => wrong.push(format!("line {}: {what}", at + 1)),
                },
                (true, None | Some("")) => wrong.push(format!(
                    "line {}: a fence of what people type is `console` and run, or says `no-run: WHY`",
                    at + 1
                )),
                (false, _) | (true, Some(_)) => {
                    push(&mut pieces, opening);
                    push(&mut pieces, &inside.concat());
                    push(&mut pieces, &closing);
                }
            }
        }
        if wrong.is_empty() { Ok(Page { pieces }) } else { Err(wrong) }
    }

    pub fn transcripts(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Piece::Transcript { .. })).count()
    }
}

fn push(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push_str(more),
        Some(Piece::Transcript { .. }) | None => pieces.push(Piece::Text(more.to_owned())),
    }
}

/// Returns how many backticks a line begins with, three at least, and what follows them.
fn fence(line: &str) -> Option<(usize, &str)> {
    let line = line.trim();
    let ticks = line.len() - line.trim_start_matches('`').len();
    (ticks >= 3 && !line[ticks..].contains('`')).then(|| (ticks, line[ticks..].trim()))
}

/// A command goes on after a backslash at the end of a line, and on lines that begin with `> `.
fn turns(lines: &[&str]) -> Result<Vec<Turn>, String> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut is_open = false;
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.trim_end().to_owned();
            is_open = true;
            turns.push(Turn { typed: (*line).to_owned(), command, shown: String::new() });
            continue;
        }
        let turn = turns.last_mut().ok_or_else(|| format!("a command was expected: {line}"))?;
        let more = line.strip_prefix("> ").or((line.trim_end() == ">").then_some(""));
        let is_more = is_open && (more.is_some() || turn.command.ends_with('\\'));
        if is_more {
            turn.typed.push_str(line);
            turn.command.push('\n');
            turn.command.push_str(more.unwrap_or(line).trim_end());
        } else {
            is_open = false;
            turn.shown.push_str(line);
        }
    }
    Ok(turns)
}

#[test]
fn a_page_is_taken_apart() {
    let text = "# A\n````markdown\n```console\n$ no\n```\n````\n```console\n$ one \\\n  two\nsaid\n$ cat <<E\n> x\n> E\n```\n\
                ```sh no-run: needs systemd\nx\n```\nend\n";
    let page = Page::read(text).map_err(|wrong| wrong.join("\n")).unwrap();
    assert_eq!(page.transcripts(), 1);
    let Some(Piece::Transcript { line, turns, .. }) = page.pieces.get(1) else { panic!("the second piece") };
    assert_eq!((*line, turns.len()), (7, 2));
    assert_eq!((turns[0].command.as_str(), turns[0].shown.as_str()), ("one \\\n  two", "said\n"));
    assert_eq!(turns[1].command, "cat <<E\nx\nE");
}

#[test]
fn a_fence_that_is_neither_run_nor_excused_is_found() {
    for text in ["a\n```sh\nls\n```\n", "a\n```bash no-run:\nls\n```\n", "a\n```console\nls\n```\n"] {
        let wrong = Page::read(text).err().unwrap();
        assert!(wrong.len() == 1 && wrong[0].starts_with("line 2: "), "{wrong:?}");
    }
    assert!(Page::read("```toml\na = 1\n```\n").is_ok());
}

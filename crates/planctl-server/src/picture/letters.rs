//! Text of a picture: how wide it is, where its lines break, and what of it XML may hold.

/// The size of main texts, in pixels.
pub(super) const TEXT: f64 = 13.0;
/// The size of texts beside them.
pub(super) const SMALL: f64 = 11.0;

/// How much wider bold letters are, at most.
pub(super) const BOLD: f64 = 1.15;

/// One line in a node.
pub(super) struct TextLine {
    /// The text.
    pub words: String,
    rank: Rank,
}

enum Rank {
    Text,
    Small,
    Stage,
}

impl TextLine {
    pub(super) fn text(words: String) -> TextLine {
        TextLine { words, rank: Rank::Text }
    }

    pub(super) fn small(words: String) -> TextLine {
        TextLine { words, rank: Rank::Small }
    }

    pub(super) fn stage(words: String) -> TextLine {
        TextLine { words, rank: Rank::Stage }
    }

    pub(super) fn size(&self) -> f64 {
        match self.rank {
            Rank::Text => TEXT,
            Rank::Small | Rank::Stage => SMALL,
        }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.rank {
            Rank::Text => "text",
            Rank::Small => "small",
            Rank::Stage => "stage",
        }
    }

    pub(super) fn height(&self) -> f64 {
        line_height(self.size())
    }

    pub(super) fn width(&self) -> f64 {
        let bold = match self.rank {
            Rank::Stage => BOLD,
            Rank::Text | Rank::Small => 1.0,
        };
        width(&self.words, self.size()) * bold
    }
}

/// Returns the height of a line of this size.
pub(super) fn line_height(size: f64) -> f64 {
    (size * 1.35).round()
}

/// Returns about how wide a text is, rather too much than too little: which font is there, nobody knows.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text.chars().map(ems).sum();
    (ems * size).ceil()
}

fn ems(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' | ' ' => 0.31,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '-' | '/' | '\\' | '"' | '·' => 0.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '✓' | '✗' | '▶' | '→' => 0.95,
        'A'..='Z' | '&' | '=' | '<' | '>' | '+' | '~' => 0.72,
        '\u{1100}'.. => 1.05,
        _ => 0.58,
    }
}

/// Breaks a text into lines of about so many letters; a text that does not fit ends with `…`.
pub(super) fn wrapped(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words: Vec<String> = text.split_whitespace().flat_map(|word| pieces(word, columns)).collect();
    words.reverse();
    while let Some(word) = words.pop() {
        let is_full = lines.len() == lines_max;
        match lines.last_mut() {
            Some(line) if letters(line) + 1 + letters(&word) <= columns => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(line) if is_full => {
                let kept: String = line.chars().take(columns.saturating_sub(1)).collect();
                *line = format!("{}…", kept.trim_end());
                break;
            }
            Some(_) | None => lines.push(word),
        }
    }
    lines
}

fn letters(text: &str) -> usize {
    text.chars().map(|letter| if letter >= '\u{1100}' { 2 } else { 1 }).sum()
}

/// Returns how many letters a line of a text takes: more than usual where the text is so long that it would be a column.
pub(super) fn columns_for(text: &str, usual: usize) -> usize {
    (letters(text) / 4).clamp(usual, usual.max(44))
}

/// Breaks a word that is longer than a line: behind the last sign that joins its parts, and within a part only where that
/// alone is too long.
fn pieces(word: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut pieces = Vec::new();
    let mut rest: Vec<char> = word.chars().collect();
    while rest.len() > columns {
        let joins = |c: &char| matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '&');
        let end = rest[..columns].iter().rposition(joins).map_or(columns, |at| at + 1);
        let tail = rest.split_off(end);
        pieces.push(rest.into_iter().collect());
        rest = tail;
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

/// Writes text so that XML holds it as it is, and nobody is led astray by what can't be seen.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in planctl_lang::printable(text).chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

//! Whether a page shows what a command prints, but for what differs from run to run and from machine to machine.

/// Says whether what is shown is what is printed. Times, digests, ids, ports of processes and the width of columns may
/// differ; `…` in what is shown stands for anything in its line, and alone in a line for any lines.
pub fn is_shown(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (steady(shown), steady(printed));
    lines_fit(&shown, &printed)
}

fn steady(text: &str) -> Vec<String> {
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=printed.len()).any(|skipped| lines_fit(rest, &printed[skipped..]))
        }
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(other, others)| fits(first, other) && lines_fit(rest, others))
        }
    }
}

fn fits(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut left) = parts.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    let Some(last) = shown.rsplit_once('…').map(|(_, last)| last) else { return left.is_empty() };
    let middle: Vec<&str> = parts.collect();
    for part in &middle[..middle.len() - 1] {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Returns a line without what differs.
pub fn line(line: &str) -> String {
    // Which Postgres is there, and in which folder of it.
    if line.contains("private Postgres") && line.contains(" in ~/.local/state/planctl") {
        return "using a private Postgres".to_owned();
    }
    let mut text = String::new();
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        if length == 0 {
            text.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let is_pid =
            [" pid", "pid:", "\"pid\":"].iter().any(|name| format!(" {}", text.trim_end()).ends_with(name));
        text.push_str(&word(&rest[..length], is_pid));
        rest = &rest[length..];
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || ":._-".contains(c)
}

fn word(word: &str, is_pid: bool) -> String {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let has_only = |text: &str, others: &str| text.chars().all(|c| c.is_ascii_digit() || others.contains(c));
    let is_clock = core.len() == 8 && core.split(':').count() == 3 && has_only(core, ":");
    let is_moment = core.len() >= 19 && core.contains('T') && has_only(core, "-:.TZ");
    let is_span = core.ends_with(['s', 'm', 'h'])
        && core.starts_with(|c: char| c.is_ascii_digit())
        && has_only(core, ".smh");
    let is_exact = core.rsplit_once('.').is_some_and(|(_, part)| part.len() >= 3) && has_only(core, ".");
    let hex = core.strip_prefix("sha256:").unwrap_or(core);
    let is_digest = hex.len() >= 6 && has_only(hex, "abcdef-") && hex.contains(|c: char| c.is_ascii_digit());
    // The id of an item begins with that of its run.
    let item = core.split_once('.').filter(|(run, _)| run.len() == 32 && has_only(run, "abcdef"));
    let secret = core
        .rsplit_once('_')
        .filter(|(name, hex)| name.starts_with("planctl_") && hex.len() >= 32 && has_only(hex, "abcdef"));
    match () {
        () if is_clock || is_moment => word.replace(core, "TIME"),
        () if is_span || is_exact => word.replace(core, "SPAN"),
        () if is_pid && has_only(core, "") => word.replace(core, "PID"),
        () if is_digest => word.replace(core, "DIGEST"),
        () => match (secret, item) {
            (Some((name, _)), _) => word.replace(core, &format!("{name}_SECRET")),
            (None, Some((_, rest))) => word.replace(core, &format!("RUN.{rest}")),
            (None, None) => word.to_owned(),
        },
    }
}

#[test]
fn what_differs_is_told_from_what_is_wrong() {
    for (shown, printed) in [
        ("08:01:58 done in 613ms", "23:59:01  done   in 1.2s"),
        ("sha256:0a1b2c3d4e5f ok", "sha256:99aabbccddee ok"),
        ("started pid 4711 · log x", "started pid 9 · log x"),
        ("pid:        16361", "pid:        9"),
        ("a\n…\nz", "a\nb\nc\nz"),
        ("a\n…\nz", "a\nz"),
        ("\"seconds\": 0.233952,", "\"seconds\": 12.0441,"),
        ("has … of … bytes", "has 7 of 12 bytes"),
        ("{\"at\":\"2026-11-22T01:02:03.5Z\"}", "{\"at\":\"2027-01-02T03:04:05Z\"}"),
        (
            "planctl_worker_0123456789abcdef0123456789abcdef",
            "planctl_worker_9876543210abcdef0123456789abcdef",
        ),
        ("01a200da7e7b7e7b8edb527923800bd7.1.1.2.agent", "01a200db00317076a49f208d547225f9.1.1.2.agent"),
        ("0198a2b4-0000-7000-8000-0123456789ab", "0298a2b4-1111-7000-8000-0123456789ab"),
    ] {
        assert!(is_shown(shown, printed), "{shown:?} {printed:?}");
    }
    for (shown, printed) in [
        ("done", "failed"),
        ("a\n…\nz", "a\nb"),
        ("has … of … bytes", "has 7 bytes"),
        ("planctl_worker_0123456789abcdef0123456789abcdef", "planctl_admin_9876543210abcdef0123456789abcdef"),
        ("2 errors", "3 errors"),
        ("", "something"),
    ] {
        assert!(!is_shown(shown, printed), "{shown:?} {printed:?}");
    }
}

//! A message as people read it where there is no program to lay it out, and as Slack's incoming webhooks take it.

use planctl_api::wire::messages::MessageView;
use planctl_api::words;
use serde_json::json;

/// Returns the message as lines: the sentence, what it is about, the last lines of what failed, and what to type.
pub(super) fn plain(message: &MessageView) -> String {
    let mut text = format!("{}\n", message.sentence);
    for line in subject_lines(message) {
        text.push_str(&format!("{line}\n"));
    }
    if !message.lines.is_empty() {
        text.push('\n');
        for line in &message.lines {
            text.push_str(&format!("    {line}\n"));
        }
    }
    if let Some(command) = &message.command {
        text.push_str(&format!("\n{command}\n"));
    }
    if let Some(link) = &message.link {
        text.push_str(&format!("{link}\n"));
    }
    text
}

/// Returns the message for a desktop, which reads markup in it.
pub(super) fn desktop(message: &MessageView) -> String {
    escaped(&plain(message))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the body for Slack. Nothing in it can mention people or make links: only these three characters begin such.
pub(super) fn slack(message: &MessageView) -> String {
    let code = |text: &str| format!("```{}```", escaped(text).replace("```", "'''"));
    let mut text = format!("*{}*", escaped(&message.sentence).replace('*', "∗"));
    for line in subject_lines(message) {
        text.push_str(&format!("\n{}", escaped(&line)));
    }
    if !message.lines.is_empty() {
        text.push_str(&format!("\n{}", code(&message.lines.join("\n"))));
    }
    if let Some(command) = &message.command {
        text.push_str(&format!("\n{}", code(command)));
    }
    if let Some(link) = &message.link {
        text.push_str(&format!("\n{}", escaped(link)));
    }
    json!({ "text": text }).to_string()
}

fn subject_lines(message: &MessageView) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(plan), Some(run)) = (&message.plan, &message.run) {
        let plan = match &message.title {
            Some(title) if words::is_of_guard(plan) => words::plan(plan, title),
            Some(title) => format!("plan {plan} \"{title}\""),
            None => format!("plan {plan}"),
        };
        lines.push(format!("{plan}, run {run}, in {}", message.workspace));
    }
    if let Some(ask) = &message.ask {
        match &ask.answer {
            Some(answer) => {
                let note = answer.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
                lines.push(format!("{} answered {}{note}", answer.by, answer.answer));
            }
            None => {
                let usual = ask.usual.as_ref().map(|usual| format!("; usually {usual}")).unwrap_or_default();
                let answers: Vec<&str> = ask.answers.iter().map(|word| words::answer_command(word)).collect();
                lines.push(format!("answers: {}{usual}", answers.join(", ")));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_for_slack_mentions_nobody_and_ends_no_block_of_code() {
        let message = MessageView {
            event: "run.failed".to_owned(),
            sentence: "<!channel> *fix* & <@U1>".to_owned(),
            workspace: "/home/me".to_owned(),
            plan: None,
            title: None,
            run: None,
            run_id: None,
            step: None,
            ask: None,
            lines: vec!["``` <https://evil.example|click>".to_owned()],
            command: Some("planctl show fix-1".to_owned()),
            link: None,
        };
        let body: serde_json::Value = serde_json::from_str(&slack(&message)).unwrap();
        let text = body["text"].as_str().unwrap();
        assert!(!text.contains('<') && !text.contains('>'), "{text}");
        assert_eq!(text.matches("```").count(), 4, "{text}");
    }
}

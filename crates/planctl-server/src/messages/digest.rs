//! Messages that were held in quiet hours, as one.

use planctl_api::wire::messages::MessageView;

/// The name of the event; the events of the messages in it are not told apart.
pub(super) const DIGEST: &str = "digest";
/// How many messages it names at most.
const LINES_MAX: usize = 50;

/// Makes one message of several, the oldest first. Of an ask, the newest word alone counts.
pub(super) fn digest(messages: &[MessageView]) -> Option<MessageView> {
    let newest = |place: usize, message: &MessageView| {
        let Some(ask) = &message.ask else { return true };
        let later = &messages[place + 1..];
        !later.iter().any(|other| other.ask.as_ref().is_some_and(|other| other.id == ask.id))
    };
    let told: Vec<&MessageView> = messages
        .iter()
        .enumerate()
        .filter(|(place, message)| newest(*place, message))
        .map(|(_, message)| message)
        .collect();
    let (first, rest) = told.split_first()?;
    if rest.is_empty() {
        return Some((*first).clone());
    }
    let mut lines: Vec<String> =
        told.iter().take(LINES_MAX).map(|message| message.sentence.clone()).collect();
    if told.len() > LINES_MAX {
        lines.push(format!("and {} more", told.len() - LINES_MAX));
    }
    Some(MessageView {
        event: DIGEST.to_owned(),
        sentence: format!("{} messages waited for the end of the quiet hours", told.len()),
        workspace: first.workspace.clone(),
        plan: None,
        title: None,
        run: None,
        run_id: None,
        step: None,
        ask: None,
        lines,
        command: None,
        link: None,
    })
}

#[cfg(test)]
mod tests {
    use planctl_api::wire::messages::MessageAsk;

    use super::*;

    fn about(ask: Option<u64>, sentence: &str) -> MessageView {
        let ask = ask.map(|id| MessageAsk {
            id,
            kind: "plan".to_owned(),
            answers: Vec::new(),
            usual: None,
            opened_at: String::new(),
            reminders: 0,
            answer: None,
        });
        MessageView {
            event: "approval.opened".to_owned(),
            sentence: sentence.to_owned(),
            workspace: "/work".to_owned(),
            plan: None,
            title: None,
            run: None,
            run_id: None,
            step: None,
            ask,
            lines: Vec::new(),
            command: None,
            link: None,
        }
    }

    #[test]
    fn several_messages_are_one_in_which_each_ask_stands_once() {
        let held = [about(Some(1), "1 waits"), about(None, "a run is done"), about(Some(1), "1 still waits")];
        let one = digest(&held).unwrap();
        assert_eq!(one.lines, ["a run is done", "1 still waits"]);
        assert_eq!(
            (one.event.as_str(), one.sentence.as_str()),
            (DIGEST, "2 messages waited for the end of the quiet hours")
        );
        let same = [about(Some(1), "1 waits"), about(Some(1), "1 still waits")];
        assert_eq!(digest(&same).unwrap(), same[1], "one message stays what it is");
        assert!(digest(&[]).is_none());
        let many: Vec<_> = (0..LINES_MAX + 2).map(|number| about(None, &number.to_string())).collect();
        assert_eq!(digest(&many).unwrap().lines.last().unwrap(), "and 2 more");
    }
}

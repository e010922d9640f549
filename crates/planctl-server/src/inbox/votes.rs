//! Votes: answers that a rule leaves to several people. The last one that is needed decides.

use planctl_api::wire::{AskRuleView, Decided, VoteView, VotedView, moment};
use planctl_api::{Next, words};
use planctl_config::AskRule;
use planctl_engine::{Answer, AskKind, ItemId};
use planctl_store::{AskRow, NewVote, StoreError, VoteRow};

use crate::node::services::{ServiceError, Services};
use crate::runs::ask_rules::AskRules;
use crate::runs::settings::RunSettings;

/// The meaning of one more vote.
pub(super) enum Cast {
    /// It is counted, and more are needed.
    Counted(Box<Decided>),
    /// It decides: with these words in the history, and once it is written with the transition.
    Decides(Box<NewVote>, Option<String>),
}

/// An answer that is to be given.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) item: &'a ItemId,
    pub(super) number: i64,
    pub(super) answer: &'a Answer,
    pub(super) note: Option<&'a str>,
    /// The digest of what the ask shows.
    pub(super) about: &'a str,
}

/// The votes on an answer with the caller's own.
pub(super) struct Tally {
    pub(super) vote: NewVote,
    /// Says that the caller voted so before.
    pub(super) is_repeated: bool,
    /// The votes that are still needed; none where this one decides.
    pub(super) lacks: Option<VotedView>,
    /// The words that stand beside the decision: the caller's own, and who agreed before, with theirs.
    pub(super) words: Option<String>,
}

/// Says who agreed before, when, and with which words: a worker reads those of all that decided.
fn agreed_before(vote: &VoteRow) -> String {
    let note = vote.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    format!("agreed before: {} ({}){note}", vote.voter, moment(vote.at))
}

impl Services {
    /// Returns the rules for the asks of the run that asks.
    pub(super) async fn ask_rules(&self, row: &AskRow) -> Result<AskRules, ServiceError> {
        Ok(RunSettings::of(&self.store.run(row.run).await?)?.asks)
    }

    /// Counts the caller's vote, or says that it decides.
    pub(super) async fn cast(
        &self,
        row: &AskRow,
        given: Given<'_>,
        rules: &AskRules,
        voting: &[(&str, &AskRule)],
    ) -> Result<Cast, ServiceError> {
        let Tally { vote, is_repeated, lacks, words } = self.tally(given, rules, voting).await?;
        let Some(lacks) = lacks else { return Ok(Cast::Decides(Box::new(vote), words)) };
        if !is_repeated {
            self.store.cast_vote(row.run, &vote).await?;
        }
        Ok(Cast::Counted(Box::new(Decided {
            run: Some(row.run_name.clone()),
            run_id: Some(row.run.to_string()),
            workspace: Some(row.workspace_path.clone()),
            ask: Some(row.number.unsigned_abs()),
            decision: given.answer.as_str().to_owned(),
            by: vote.voter,
            next: Some(Next::ShowAsk { ask: row.number.unsigned_abs() }),
            repeated: is_repeated,
            voted: Some(lacks),
        })))
    }

    /// Counts the votes on an answer, with the caller's own.
    pub(super) async fn tally(
        &self,
        given: Given<'_>,
        rules: &AskRules,
        voting: &[(&str, &AskRule)],
    ) -> Result<Tally, ServiceError> {
        let Given { item, number, answer, note, about } = given;
        let person = self.caller.person.as_str();
        if let Some(refused) = may_not_vote(rules, voting, person, number, answer) {
            return Err(refused);
        }
        let votes = self.store.votes(item).await?;
        let counting: Vec<&VoteRow> = votes.iter().filter(|vote| vote.void.is_none()).collect();
        let agrees = |vote: &&&VoteRow| vote.answer == *answer && vote.about == about;
        let is_repeated = counting.iter().filter(agrees).any(|vote| vote.voter == person);
        let mut people: Vec<&str> = counting.iter().filter(agrees).map(|vote| vote.voter.as_str()).collect();
        if !is_repeated {
            people.push(person);
        }
        let have =
            |rule: &AskRule| people.iter().filter(|voter| rules.counts_vote_of(rule, voter)).count() as u64;
        let lacks = |(_, rule): &&(&str, &AskRule)| rule.approvals.saturating_sub(have(rule));
        let vote = NewVote {
            item: item.clone(),
            voter: person.to_owned(),
            answer: answer.clone(),
            about: about.to_owned(),
            note: note.map(str::to_owned),
            seen: counting.iter().map(|vote| vote.id).collect(),
        };
        let lacking = voting.iter().filter(|rule| lacks(rule) > 0).max_by_key(lacks);
        let lacks = lacking.map(|(name, rule)| VotedView {
            rule: (*name).to_owned(),
            have: have(rule),
            needed: rule.approvals,
        });
        let others = counting.iter().filter(agrees).filter(|vote| vote.voter != person);
        let own = note.map(str::to_owned).into_iter();
        let lines: Vec<String> = own.chain(others.map(|vote| agreed_before(vote))).collect();
        let words = (!lines.is_empty()).then(|| lines.join("\n"));
        Ok(Tally { vote, is_repeated, lacks, words })
    }

    /// Returns the votes on an ask, and the rules that it is under, for people.
    pub(super) async fn votes_shown(
        &self,
        row: &AskRow,
    ) -> Result<(Vec<AskRuleView>, Vec<VoteView>), ServiceError> {
        self.votes_by_rules(&self.ask_rules(row).await?, row.ask.kind, &row.item).await
    }

    /// Returns the votes on an ask of a kind, and those of the rules that it is under, for people.
    pub(super) async fn votes_by_rules(
        &self,
        rules: &AskRules,
        kind: AskKind,
        item: &ItemId,
    ) -> Result<(Vec<AskRuleView>, Vec<VoteView>), ServiceError> {
        if rules.is_none() {
            return Ok((Vec::new(), Vec::new()));
        }
        let shown = rules.on(kind).filter(|(_, rule)| rule.wants_votes());
        let shown = shown.map(|(name, rule)| AskRuleView {
            rule: name.to_owned(),
            needed: rule.approvals,
            demands: rule.describe(),
        });
        let votes = self.store.votes(item).await?.into_iter().map(|vote| VoteView {
            by: vote.voter,
            answer: vote.answer.as_str().to_owned(),
            at: moment(vote.at),
            note: vote.note,
            void: vote.void,
        });
        Ok((shown.collect(), votes.collect()))
    }
}

/// Refuses the vote of a person whom no rule asks.
fn may_not_vote(
    rules: &AskRules,
    voting: &[(&str, &AskRule)],
    person: &str,
    number: i64,
    answer: &Answer,
) -> Option<ServiceError> {
    if voting.iter().any(|(_, rule)| rules.counts_vote_of(rule, person)) {
        return None;
    }
    let demands: Vec<String> =
        voting.iter().map(|(name, rule)| format!("the rule {name} wants {}", rule.describe())).collect();
    let ask = number.unsigned_abs();
    Some(ServiceError::NotAsked {
        what: format!("{} ask {ask} as {}: {}", answer.as_str(), words::safe(person), demands.join("; ")),
        next: Next::ShowAsk { ask },
    })
}

/// Says whether a vote lost a race, so that it has to be looked at anew.
pub(super) fn is_voted_meanwhile<T>(result: &Result<T, ServiceError>) -> bool {
    matches!(result, Err(ServiceError::Store(StoreError::VotedMeanwhile)))
}

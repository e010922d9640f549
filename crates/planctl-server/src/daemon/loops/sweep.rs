//! Sweeps what ran out: leases of the dead, leases past their time, timers. Any process may do it, and several do. A run with
//! which something is wrong goes into quarantine (`node/quarantine`).

use std::collections::BTreeSet;
use std::time::Duration;

use planctl_engine::{Actor, Answer, Decision, Event, HumanEvent, RunId, StoppingAnswer};
use planctl_lang::duration_words;
use planctl_store::{Expired, LapsedAsk, LeftRun, NewDraftAnswer, Proof, StoreError, Unread};

use crate::node::ServerNode;
use crate::node::instance;
use crate::node::quarantine::SweepReport;
use crate::node::services::ServiceError;

/// How often it looks.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// How many leases or timers are taken at once.
const AT_ONCE: i64 = 100;

impl ServerNode {
    /// Expires the leases that are over and fires due timers.
    ///
    /// # Errors
    ///
    /// Those of the connection; an error of one run is part of the report.
    pub(crate) async fn sweep_once(&self) -> Result<SweepReport, ServiceError> {
        self.settle_standstill().await?;
        let (mut report, mut recovered) = (SweepReport::default(), BTreeSet::new());
        let mut dead = Vec::new();
        let quarantined = self.quarantine().runs();
        for (boot, holder) in self.store.holders(self.host()).await? {
            if instance::is_gone(self.state_dir(), &holder, boot == self.boot()) {
                for expired in self.store.leases_of_dead_instance(self.host(), &holder, &quarantined).await? {
                    let Some(expired) = self.readable(expired, &mut report) else { continue };
                    if self.run_contained(expired.run, self.expire(&expired), &mut report).await? {
                        report.expired += 1;
                        recovered.insert(expired.run);
                    }
                }
                dead.push(holder);
            }
        }
        self.store.release_lost(self.host(), &dead).await?;
        let own = self.holder()?.instance;
        for expired in self.expired_leases(&quarantined).await? {
            let Some(expired) = self.readable(expired, &mut report) else { continue };
            // This very process renews its own leases at its next heartbeat: it slept, or the database was away.
            // Others may take it all the same.
            let is_late = expired.holder.as_ref() == Some(&own) && self.in_flight().has(&expired.item);
            if (expired.is_overrun || !is_late)
                && self.run_contained(expired.run, self.expire(&expired), &mut report).await?
            {
                report.expired += 1;
            }
        }
        for timer in self.store.due_timers(&quarantined, AT_ONCE).await? {
            let Some(timer) = self.readable(timer, &mut report) else { continue };
            let firing = async {
                was_applied(self.store.apply(timer.run, &timer.event(), &Proof::Clock, None).await.map(drop))
            };
            self.run_contained(timer.run, firing, &mut report).await?;
        }
        for lapsed in self.store.expired_asks(&quarantined, AT_ONCE).await? {
            let Some(run) = lapsed.run else {
                self.answer_lapsed_draft(&lapsed).await?;
                continue;
            };
            self.run_contained(run, self.answer_lapsed(run, &lapsed), &mut report).await?;
        }
        self.tell_of_days(&mut report).await?;
        self.sweep_sub_plans(&mut report).await?;
        report.recovered = recovered.len() as u64;
        Ok(report)
    }

    /// Returns leases that are over. Where the machine slept until just before, they are extended, and none is.
    async fn expired_leases(&self, except: &[RunId]) -> Result<Vec<Result<Expired, Unread>>, ServiceError> {
        let expired = self.store.expired(except, AT_ONCE).await?;
        let has_slept = !expired.is_empty() && self.settle_standstill().await?;
        Ok(if has_slept { Vec::new() } else { expired })
    }

    /// Sees to it that what this machine slept since the last call counts for no work; says whether it did.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub(crate) async fn settle_standstill(&self) -> Result<bool, ServiceError> {
        let slept = self.store.settle_standstill(self.host()).await?;
        if let Some(span) = slept {
            tracing::info!(seconds = span.as_secs(), "this machine slept; the time counts for no work");
        }
        Ok(slept.is_some())
    }

    /// Tells runs what follows from the budgets of their days: work that has to wait, and asks that wait no more.
    ///
    /// # Errors
    ///
    /// Those of the connection; an error of one run is part of the report.
    pub(crate) async fn tell_of_days(&self, report: &mut SweepReport) -> Result<(), ServiceError> {
        for news in self.store.day_news(&self.quarantine().runs(), AT_ONCE).await? {
            let telling = async {
                was_applied(self.store.apply(news.run, &news.event, &Proof::Clock, None).await.map(drop))
            };
            self.run_contained(news.run, telling, report).await?;
        }
        Ok(())
    }

    /// Says that this process works on these runs, or on all of its host. The time in which nobody did counts for no budget.
    ///
    /// # Errors
    ///
    /// Those of the connection; an error of one run is part of the report.
    pub(crate) async fn attend(
        &self,
        runs: Option<&[RunId]>,
        report: &mut SweepReport,
    ) -> Result<(), ServiceError> {
        self.tell_left(self.store.left_runs(self.host(), runs).await?, report).await?;
        Ok(self.store.attend(self.host(), runs).await?)
    }

    /// Says that this process works on these runs, or on all of its host, no longer: their time counts up to this moment.
    ///
    /// # Errors
    ///
    /// Those of the connection; an error of one run is part of the report.
    pub(crate) async fn leave(
        &self,
        runs: Option<&[RunId]>,
        report: &mut SweepReport,
    ) -> Result<(), ServiceError> {
        self.tell_left(self.store.leave(self.host(), runs).await?, report).await
    }

    /// Tells runs that no process works on them.
    async fn tell_left(&self, left: Vec<LeftRun>, report: &mut SweepReport) -> Result<(), ServiceError> {
        for left in left {
            let telling = async {
                was_applied(self.store.apply(left.run, &left.event(), &Proof::Clock, None).await.map(drop))
            };
            self.run_contained(left.run, telling, report).await?;
        }
        Ok(())
    }

    /// Gives an ask that nobody has answered in time the answer of its rule, which lets nothing go on.
    async fn answer_lapsed(&self, run: RunId, lapsed: &LapsedAsk) -> Result<bool, ServiceError> {
        let event = Event::Human(HumanEvent {
            by: Actor::policy(&lapsed.deadline.rule),
            note: Some(waited_in_vain(lapsed)),
            decision: Decision::Answer {
                item: lapsed.item.clone(),
                answer: answer_of(lapsed.deadline.answer),
            },
        });
        let proof = Proof::Person { key: None };
        was_applied(self.store.apply(run, &event, &proof, None).await.map(drop))
    }

    /// Does so for the ask of a draft, which no run waits for.
    async fn answer_lapsed_draft(&self, lapsed: &LapsedAsk) -> Result<(), ServiceError> {
        let (by, note) = (Actor::policy(&lapsed.deadline.rule), waited_in_vain(lapsed));
        let given = NewDraftAnswer {
            item: &lapsed.item,
            by: by.as_str(),
            answer: &answer_of(lapsed.deadline.answer),
            about: "",
            note: Some(&note),
            seen: None,
            decides: true,
        };
        match self.store.answer_draft(given).await {
            // Somebody answered it in the last moment.
            Ok(()) | Err(StoreError::VotedMeanwhile) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends a lease; says whether it was still to be ended.
    async fn expire(&self, expired: &Expired) -> Result<bool, ServiceError> {
        was_applied(self.store.apply(expired.run, &expired.event(), &expired.proof(), None).await.map(drop))
    }
}

fn answer_of(answer: StoppingAnswer) -> Answer {
    match answer {
        StoppingAnswer::Reject => Answer::Reject,
        StoppingAnswer::Abort => Answer::Abort,
    }
}

fn waited_in_vain(lapsed: &LapsedAsk) -> String {
    format!("nobody answered within {}", duration_words(lapsed.deadline.at.since(lapsed.created_at)))
}

/// Passes over news that came too late: the holder was quicker, or another process did the same.
fn was_applied(applied: Result<(), StoreError>) -> Result<bool, ServiceError> {
    match applied {
        Ok(()) => Ok(true),
        Err(StoreError::StaleLease | StoreError::Refused(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

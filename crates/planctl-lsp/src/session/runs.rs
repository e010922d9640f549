//! Runs the contract of a step because a person asked for it.

use gen_lsp_types as lsp;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::super::client::{Client, Refusal};
use super::super::contract::{RUN_CONTRACT, Report, Trial};
use super::{Session, read_params};

/// A verification or trial that a person waits for.
pub(super) struct Run {
    cancel: Option<oneshot::Sender<()>>,
    pub(super) token: Option<Value>,
    is_begun: bool,
    title: String,
}

/// A contract that ended.
pub struct Ran {
    id: Value,
    report: Result<Report, Refusal>,
}

impl<'a> Session<'a> {
    pub(super) fn execute(&mut self, id: &Value, params: Value) -> Result<(), Refusal> {
        let params: lsp::ExecuteCommandParams = read_params(params)?;
        let refuse = |message: String| Refusal::new(Refusal::INVALID_PARAMS, message);
        if params.command != RUN_CONTRACT {
            return Err(refuse(format!("planctl knows no command `{}`", params.command)));
        }
        let argument = params.arguments.unwrap_or_default().into_iter().next().unwrap_or_default();
        let word = |name: &str| match argument.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            _ => Err(refuse(format!("{RUN_CONTRACT} takes {{\"uri\": …, \"step\": …}}"))),
        };
        let (uri, step) = (word("uri")?, word("step")?);
        let document =
            self.documents.get(&uri).ok_or_else(|| refuse(format!("the file {uri} is not open")))?;
        let (reading, workspace) = (document.reading(), document.workspace.clone());
        let config = self.config(&workspace);
        let trial = Trial::new(&step, &reading, workspace, config)?;
        let spawner = self.spawner().map_err(|message| Refusal::new(Refusal::FAILED, message))?;
        let state_dir = self.host.state_dir().map_err(|message| Refusal::new(Refusal::FAILED, message))?;
        let token = params.work_done_progress_params.work_done_token;
        let token = token.and_then(|token| serde_json::to_value(token).ok());
        self.begin_run(id, &step, token);
        let (sender, receiver) = oneshot::channel();
        if let Some(run) = self.runs.get_mut(&id.to_string()) {
            run.cancel = Some(sender);
        }
        let id = id.clone();
        self.trials.spawn(async move { Ran { id, report: trial.run(spawner, state_dir, receiver).await } });
        Ok(())
    }

    fn begin_run(&mut self, id: &Value, step: &str, token: Option<Value>) {
        let key = id.to_string();
        let title = format!("contract of step {step}");
        let mut run = Run { cancel: None, is_begun: false, title, token };
        match &run.token {
            Some(_) => begin_progress(&self.client, &mut run),
            None if self.shows_progress => {
                let token = json!(format!("planctl-contract-{key}"));
                let asked = self.client.ask("window/workDoneProgress/create", &json!({ "token": token }));
                run.token = Some(token);
                self.tokens.insert(asked.to_string(), key.clone());
            }
            None => {}
        }
        self.runs.insert(key, run);
    }

    /// Takes in an answer to a request of ours.
    pub(super) fn on_answer(&mut self, id: &Value, is_granted: bool) {
        let run = self.tokens.remove(&id.to_string()).and_then(|key| self.runs.get_mut(&key));
        if let Some(run) = run.filter(|_| is_granted) {
            begin_progress(&self.client, run);
        }
    }

    pub(super) fn cancel(&mut self, id: &Value) {
        if let Some(run) = self.runs.get_mut(&id.to_string()) {
            return cancel(run);
        }
        for document in self.documents.values_mut() {
            if let Some(at) = document.waiting.iter().position(|waiting| waiting.id == *id) {
                document.waiting.remove(at);
                let refusal = Refusal::new(Refusal::CANCELLED, "cancelled");
                return self.client.answer(id, Err(refusal));
            }
        }
    }

    pub(super) fn on_run_end(&mut self, ran: &Ran) {
        let run = self.runs.remove(&ran.id.to_string());
        if let Some(token) = run.filter(|run| run.is_begun).and_then(|run| run.token) {
            let value = match &ran.report {
                Ok(report) => json!({ "kind": "end", "message": report.line }),
                Err(refusal) => json!({ "kind": "end", "message": refusal.message }),
            };
            self.client.notify("$/progress", json!({ "token": token, "value": value }));
        }
        match &ran.report {
            Ok(report) => {
                self.client.log(report.weight, &planctl_lang::printable(&report.log));
                self.client.show(report.weight, &report.line);
                self.client.answer(&ran.id, Ok(report.value.clone()));
            }
            Err(refusal) => self.client.answer(&ran.id, Err(refusal.clone())),
        }
    }
}

fn begin_progress(client: &Client, run: &mut Run) {
    run.is_begun = true;
    let value = json!({ "kind": "begin", "title": run.title, "cancellable": true });
    client.notify("$/progress", json!({ "token": run.token, "value": value }));
}

pub(super) fn cancel(run: &mut Run) {
    if let Some(cancel) = run.cancel.take()
        && cancel.send(()).is_err()
    {
        tracing::debug!("the contract had ended already");
    }
}

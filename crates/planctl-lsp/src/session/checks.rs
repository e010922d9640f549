//! Verifies open files beside the conversation.

use std::path::Path;

use planctl_config::Config;
use planctl_harness::Spawner;
use planctl_lang::{Source, Verification};
use planctl_server::check::{Checking, plan_path, verify_text};
use serde_json::Value;

use super::super::client::Weight;
use super::super::document::{Document, WaitingRequest};
use super::super::findings;
use super::Session;

/// A verification that ended.
pub struct Looked {
    uri: String,
    generation: u64,
    found: Result<Box<Verification>, String>,
}

impl<'a> Session<'a> {
    pub(super) fn check_all(&mut self) {
        let keys: Vec<String> = self.documents.keys().cloned().collect();
        for key in keys {
            if let Some(document) = self.documents.get_mut(&key) {
                document.invalidate();
            }
            self.check(&key);
        }
    }

    /// Verifies a file's text, unless that is being done: then once more at its end.
    pub(super) fn check(&mut self, key: &str) {
        let Some(mut document) = self.documents.remove(key) else { return };
        if !document.is_plan() {
            self.clear_marks(&mut document);
        } else if document.checking.is_none() {
            document.checking = Some(document.generation);
            self.begin_check(key, &document);
        }
        self.documents.insert(key.to_owned(), document);
    }

    fn begin_check(&mut self, key: &str, document: &Document) {
        let config = self.config(&document.workspace);
        let (uri, generation) = (key.to_owned(), document.generation);
        let (path, workspace) = (document.path.clone(), document.workspace.clone());
        let bytes = document.text.as_str().as_bytes().to_vec();
        let spawner = self.spawner();
        let state_dir = self.host.state_dir().ok();
        self.checks.spawn(async move {
            let checked = async {
                let source = match Source::from_bytes(path.to_string_lossy(), bytes) {
                    Ok(source) => source,
                    Err(unreadable) => return Ok(Box::new(Verification::unreadable(&unreadable))),
                };
                let spawner = spawner?;
                let checking = Checking {
                    workspace: &workspace,
                    folder: "",
                    config: &config,
                    state_dir: state_dir.as_deref(),
                    worker: None,
                    levels: &config.verify,
                    probe: None,
                };
                let shown = plan_path(&path, &workspace);
                let found = verify_text(&path, &shown, &source, checking, &spawner).await;
                found.map(Box::new).map_err(|error| format!("could not {error}"))
            };
            Looked { uri, generation, found: checked.await }
        });
    }

    pub(super) fn spawner(&self) -> Result<Spawner, String> {
        if let Some(spawner) = self.spawner.get() {
            return Ok(spawner.clone());
        }
        let spawner =
            Spawner::start_self(None).map_err(|error| format!("could not start the helper: {error}"))?;
        Ok(self.spawner.get_or_init(|| spawner).clone())
    }

    pub(super) fn config(&mut self, workspace: &Path) -> Config {
        match self.host.load(workspace) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    self.show_once(Weight::Warning, warning);
                }
                loaded.config
            }
            Err(message) => {
                self.show_once(Weight::Error, &message);
                Config::default()
            }
        }
    }

    pub(super) fn apply_check(&mut self, looked: Looked) {
        let Some(document) = self.documents.get_mut(&looked.uri) else { return };
        if document.checking == Some(looked.generation) {
            document.checking = None;
        }
        if document.generation != looked.generation {
            // An edit overtook it.
            return self.check(&looked.uri);
        }
        match looked.found {
            Ok(found) => {
                document.findings = Some(*found);
                let marks = findings::diagnostics(document);
                document.is_marked = true;
                self.client.notify("textDocument/publishDiagnostics", findings::published(document, &marks));
            }
            Err(message) => self.show_once(Weight::Error, &message),
        }
        let waiting =
            self.documents.get_mut(&looked.uri).map(|document| std::mem::take(&mut document.waiting));
        for waiting in waiting.into_iter().flatten() {
            let answer = self.read(&waiting.method, waiting.params);
            self.client.answer(&waiting.id, answer);
        }
    }

    /// Puts a request off until the newest text is verified; gives its parameters back where it need not wait.
    pub(super) fn wait_for_findings(&mut self, id: Value, method: &str, params: Value) -> Option<Value> {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str).unwrap_or_default();
        let document = self.documents.get_mut(uri).filter(|document| document.checking.is_some());
        let Some(document) = document else { return Some(params) };
        document.waiting.push(WaitingRequest { id, method: method.to_owned(), params });
        None
    }
}

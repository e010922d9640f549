//! One conversation with an editor: its open files, what is being verified, what runs.
//!
//! Messages are handled one after the other, so edits keep their order. A verification runs beside them; one that an
//! edit overtook is dropped and begun anew. Requests that need the findings wait for those of the newest text.

mod checks;
mod runs;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use gen_lsp_types as lsp;
use planctl_harness::{Spawner, git_top_level};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Client, Refusal, Weight};
use super::contract::RUN_CONTRACT;
use super::document::{Document, path_of};
use super::frames::Frame;
use super::host::Host;
use super::text::{Encoding, Text};
use super::{completion, findings, hover, outline, places};
pub use checks::Looked;
pub use runs::Ran;
use runs::{Run, cancel};

/// The state of a session, which decides the answer to requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing is known about the editor.
    Fresh,
    /// Files are open.
    Running,
    /// The editor said goodbye.
    ShutDown,
}

/// A conversation.
pub struct Session<'a> {
    host: &'a dyn Host,
    client: Client,
    stage: Stage,
    encoding: Encoding,
    shows_progress: bool,
    watches_files: bool,
    folders: Vec<PathBuf>,
    documents: BTreeMap<String, Document>,
    checks: JoinSet<Looked>,
    trials: JoinSet<Ran>,
    /// By the JSON of the request's id.
    runs: HashMap<String, Run>,
    /// Our own requests to show progress, and the runs they belong to.
    tokens: HashMap<String, String>,
    spawner: OnceCell<Spawner>,
    /// Messages shown once that are not repeated.
    said: BTreeSet<String>,
    parent: Option<i32>,
    exit: Option<bool>,
}

/// Something that ended beside the conversation.
pub enum Done {
    /// A verification.
    Looked(Result<Looked, tokio::task::JoinError>),
    /// A contract.
    Ran(Result<Ran, tokio::task::JoinError>),
}

impl<'a> Session<'a> {
    /// Begins a conversation.
    pub fn new(host: &'a dyn Host, client: Client) -> Session<'a> {
        Session {
            host,
            client,
            stage: Stage::Fresh,
            encoding: Encoding::Utf16,
            shows_progress: false,
            watches_files: false,
            folders: Vec::new(),
            documents: BTreeMap::new(),
            checks: JoinSet::new(),
            trials: JoinSet::new(),
            runs: HashMap::new(),
            tokens: HashMap::new(),
            spawner: OnceCell::new(),
            said: BTreeSet::new(),
            parent: None,
            exit: None,
        }
    }

    /// Returns whether the conversation ended in order, once it has ended.
    pub fn exit(&self) -> Option<bool> {
        self.exit
    }

    /// Returns the editor's process, once after it was told.
    pub fn take_parent(&mut self) -> Option<i32> {
        self.parent.take()
    }

    /// Waits for something that runs beside the conversation; for ever where nothing does.
    pub async fn next_finished(&mut self) -> Done {
        tokio::select! {
            Some(looked) = self.checks.join_next() => Done::Looked(looked),
            Some(ran) = self.trials.join_next() => Done::Ran(ran),
            else => std::future::pending().await,
        }
    }

    /// Ends everything that runs.
    pub async fn close(mut self) {
        for run in self.runs.values_mut() {
            cancel(run);
        }
        self.checks.abort_all();
        while self.trials.join_next().await.is_some() {}
        if let Some(spawner) = self.spawner.take() {
            spawner.shutdown();
        }
    }

    /// Handles what the editor sent.
    pub fn handle_frame(&mut self, frame: Frame) {
        let message = match frame {
            Frame::Json(Value::Object(message)) => message,
            Frame::Json(_) => {
                let refusal = Refusal::new(Refusal::INVALID_REQUEST, "a message is a JSON object");
                return self.client.answer(&Value::Null, Err(refusal));
            }
            Frame::Malformed(what) => {
                let refusal = Refusal::new(Refusal::PARSE_ERROR, format!("the message is not JSON: {what}"));
                return self.client.answer(&Value::Null, Err(refusal));
            }
        };
        let id = message.get("id").filter(|id| id.is_string() || id.is_number());
        let params = || message.get("params").cloned().unwrap_or(Value::Null);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.request(id.clone(), method, params()),
            (Some(method), None) if !message.contains_key("id") => self.notification(method, params()),
            (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
                self.on_answer(id, !message.contains_key("error"))
            }
            _ => {
                let refusal =
                    Refusal::new(Refusal::INVALID_REQUEST, "the message has no method, or no proper id");
                self.client.answer(id.unwrap_or(&Value::Null), Err(refusal));
            }
        }
    }

    fn request(&mut self, id: Value, method: &str, params: Value) {
        let refuse = |code, message: &str| Err(Refusal::new(code, message));
        let answer = match (self.stage, method) {
            (Stage::Fresh, "initialize") => Ok(self.initialize(&params)),
            (Stage::Fresh, _) => refuse(Refusal::NOT_INITIALIZED, "the first request is initialize"),
            (Stage::Running, "initialize") => refuse(Refusal::INVALID_REQUEST, "initialize was sent before"),
            (Stage::Running, "shutdown") => {
                self.stage = Stage::ShutDown;
                Ok(Value::Null)
            }
            (Stage::Running, "workspace/executeCommand") => match self.execute(&id, params) {
                Ok(()) => return,
                Err(refusal) => Err(refusal),
            },
            (Stage::Running, "textDocument/codeAction" | "textDocument/hover") => {
                match self.wait_for_findings(id.clone(), method, params) {
                    None => return,
                    Some(params) => self.read(method, params),
                }
            }
            (Stage::Running, _) => self.read(method, params),
            (Stage::ShutDown, _) => refuse(Refusal::INVALID_REQUEST, "the server is shut down"),
        };
        self.client.answer(&id, answer);
    }

    fn notification(&mut self, method: &str, params: Value) {
        if method == "exit" {
            self.exit = Some(self.stage == Stage::ShutDown);
            return;
        }
        if self.stage != Stage::Running {
            return;
        }
        let handled = match method {
            "initialized" => {
                self.watch_files();
                Ok(())
            }
            "textDocument/didOpen" => read_params(params).map(|params| self.open(params)),
            "textDocument/didChange" => read_params(params).map(|params| self.change(params)),
            "textDocument/didClose" => read_params(params).map(|params| self.close_document(&params)),
            // Files that plans name may have changed with it.
            "textDocument/didSave"
            | "workspace/didChangeWatchedFiles"
            | "workspace/didChangeConfiguration" => {
                self.check_all();
                Ok(())
            }
            "workspace/didChangeWorkspaceFolders" => {
                read_params(params).map(|params: lsp::DidChangeWorkspaceFoldersParams| {
                    self.folders.retain(|folder| {
                        !params.event.removed.iter().any(|gone| path_of(&gone.uri).as_ref() == Some(folder))
                    });
                    self.folders.extend(params.event.added.iter().filter_map(|added| path_of(&added.uri)));
                })
            }
            "$/cancelRequest" => {
                self.cancel(params.get("id").unwrap_or(&Value::Null));
                Ok(())
            }
            "window/workDoneProgress/cancel" => {
                let token = params.get("token");
                for run in self.runs.values_mut().filter(|run| run.token.as_ref() == token) {
                    cancel(run);
                }
                Ok(())
            }
            // Notifications that are not known may be left aside.
            _ => Ok(()),
        };
        if let Err(Refusal { message, .. }) = handled {
            tracing::warn!(method, "a notification can't be read: {message}");
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        let offered = params.pointer("/capabilities/general/positionEncodings").and_then(Value::as_array);
        if offered.is_some_and(|offered| offered.iter().any(|encoding| encoding == "utf-8")) {
            self.encoding = Encoding::Utf8;
        }
        let is_true = |pointer: &str| params.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        self.shows_progress = is_true("/capabilities/window/workDoneProgress");
        self.watches_files = is_true("/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration");
        let folders = params.get("workspaceFolders").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut folders: Vec<Value> =
            folders.iter().filter_map(|folder| folder.get("uri").cloned()).collect();
        if folders.is_empty() {
            folders.extend(params.get("rootUri").cloned());
        }
        let paths = folders.iter().filter_map(|uri| path_of(&lsp::Uri(uri.as_str()?.to_owned())));
        self.folders = paths.collect();
        self.parent = params.get("processId").and_then(Value::as_i64).and_then(|pid| i32::try_from(pid).ok());
        self.stage = Stage::Running;
        let encoding = match self.encoding {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
        };
        json!({
            "serverInfo": { "name": "planctl", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": {
                "positionEncoding": encoding,
                "textDocumentSync": { "openClose": true, "change": 2, "save": true },
                "hoverProvider": true,
                "completionProvider": { "triggerCharacters": ["*", ":", "/"] },
                "definitionProvider": true,
                "documentLinkProvider": { "resolveProvider": false },
                "documentSymbolProvider": true,
                "foldingRangeProvider": true,
                "documentFormattingProvider": true,
                "codeActionProvider": { "codeActionKinds": ["quickfix", "source.fixAll"] },
                "codeLensProvider": { "resolveProvider": false },
                "executeCommandProvider": { "commands": [RUN_CONTRACT], "workDoneProgress": true },
                "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
            },
        })
    }

    // Configuration decides about roles and the PATH, so a change of it changes findings.
    fn watch_files(&mut self) {
        if self.watches_files {
            let options = json!({ "watchers": [{ "globPattern": "**/planctl.toml" }] });
            let wish = json!({ "id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": options });
            self.client.ask("client/registerCapability", &json!({ "registrations": [wish] }));
        }
    }

    fn open(&mut self, params: lsp::DidOpenTextDocumentParams) {
        let opened = params.text_document;
        let path = path_of(&opened.uri);
        let workspace = self.workspace_of(path.as_deref());
        let path = path.unwrap_or_else(|| workspace.join("untitled.md"));
        let text = Text::new(opened.text, self.encoding);
        let key = opened.uri.0.clone();
        self.documents.insert(key.clone(), Document::new(opened.uri, path, workspace, opened.version, text));
        self.check(&key);
    }

    /// Returns the workspace that `plan verify` would take, typed in the editor's folder.
    fn workspace_of(&self, path: Option<&Path>) -> PathBuf {
        if self.host.names_workspace() {
            return self.host.workspace().to_owned();
        }
        let holds = |folder: &&PathBuf| path.is_none_or(|path| path.starts_with(folder));
        let folder = self.folders.iter().filter(holds).max_by_key(|folder| folder.as_os_str().len());
        let folder = folder.map(PathBuf::as_path).or_else(|| path.and_then(Path::parent));
        let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) else {
            return self.host.workspace().to_owned();
        };
        git_top_level(&folder).map_or(folder.clone(), Path::to_owned)
    }

    fn change(&mut self, params: lsp::DidChangeTextDocumentParams) {
        let identifier = params.text_document;
        let key = identifier.text_document_identifier.uri.0;
        if let Some(document) = self.documents.get_mut(&key) {
            document.change(identifier.version, params.content_changes, self.encoding);
            self.check(&key);
        }
    }

    fn close_document(&mut self, params: &lsp::DidCloseTextDocumentParams) {
        if let Some(mut document) = self.documents.remove(&params.text_document.uri.0) {
            for waiting in std::mem::take(&mut document.waiting) {
                let refusal = Refusal::new(Refusal::INVALID_PARAMS, "the file was closed");
                self.client.answer(&waiting.id, Err(refusal));
            }
            self.clear_marks(&mut document);
        }
    }

    fn clear_marks(&self, document: &mut Document) {
        if std::mem::take(&mut document.is_marked) {
            self.client.notify("textDocument/publishDiagnostics", findings::published(document, &[]));
        }
    }

    fn show_once(&mut self, weight: Weight, message: &str) {
        if self.said.insert(message.to_owned()) {
            self.client.show(weight, &format!("planctl: {}", planctl_lang::printable(message)));
        }
    }

    /// Takes in what ended beside the conversation.
    pub fn on_job_end(&mut self, done: Done) {
        match done {
            Done::Looked(Ok(looked)) => self.apply_check(looked),
            Done::Ran(Ok(ran)) => self.on_run_end(&ran),
            Done::Looked(Err(error)) | Done::Ran(Err(error)) => {
                if !error.is_cancelled() {
                    tracing::error!(%error, "part of the server ended");
                    self.show_once(
                        Weight::Error,
                        "a defect: verification ended without an answer; see the log",
                    );
                }
            }
        }
    }

    /// Answers a request that changes nothing.
    fn read(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        let answered = catch_unwind(AssertUnwindSafe(|| self.read_unguarded(method, params)));
        answered.unwrap_or_else(|_| {
            tracing::error!(method, "a request ended in a panic");
            Err(Refusal::new(Refusal::INTERNAL_ERROR, "a defect of planctl; see its log"))
        })
    }

    fn read_unguarded(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            "textDocument/hover" => self.answer_about_plan(params, |document, params: lsp::HoverParams| {
                hover::hover(document, params.text_document_position_params.position)
            }),
            "textDocument/completion" => {
                let uri = params.pointer("/textDocument/uri").and_then(Value::as_str).unwrap_or_default();
                let workspace = self.documents.get(uri).map(|document| document.workspace.clone());
                let config = workspace.map(|workspace| self.config(&workspace)).unwrap_or_default();
                let roles = config.roles.keys().map(|role| role.as_str().to_owned()).collect();
                self.answer_about_plan(params, |document, params: lsp::CompletionParams| {
                    completion::complete(document, params.text_document_position_params.position, &roles)
                })
            }
            "textDocument/definition" => {
                self.answer_about_plan(params, |document, params: lsp::DefinitionParams| {
                    places::definition(document, params.text_document_position_params.position)
                })
            }
            "textDocument/documentLink" => {
                self.answer_about_plan(params, |document, _: lsp::DocumentLinkParams| places::links(document))
            }
            "textDocument/documentSymbol" => self
                .answer_about_plan(params, |document, _: lsp::DocumentSymbolParams| {
                    outline::symbols(document)
                }),
            "textDocument/foldingRange" => self
                .answer_about_plan(params, |document, _: lsp::FoldingRangeParams| outline::folds(document)),
            "textDocument/formatting" => self
                .answer_about_plan(params, |document, _: lsp::DocumentFormattingParams| {
                    findings::format(document)
                }),
            "textDocument/codeLens" => {
                self.answer_about_plan(params, |document, _: lsp::CodeLensParams| outline::lenses(document))
            }
            "textDocument/codeAction" => self
                .answer_about_plan(params, |document, params: lsp::CodeActionParams| {
                    findings::actions(document, &params)
                }),
            other => Err(Refusal::new(Refusal::METHOD_NOT_FOUND, format!("planctl does not know `{other}`"))),
        }
    }

    /// Answers about an open plan; about any other markdown file there is nothing to say.
    fn answer_about_plan<P: DeserializeOwned, R: Serialize>(
        &self,
        params: Value,
        answer: impl FnOnce(&Document, P) -> R,
    ) -> Result<Value, Refusal> {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = read_params(params)?;
        let document = self.documents.get(&uri);
        let document = document
            .ok_or_else(|| Refusal::new(Refusal::INVALID_PARAMS, format!("the file {uri} is not open")))?;
        if !document.is_plan() {
            return Ok(Value::Null);
        }
        serde_json::to_value(answer(document, params))
            .map_err(|error| Refusal::new(Refusal::INTERNAL_ERROR, error.to_string()))
    }
}

fn read_params<P: DeserializeOwned>(params: Value) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| {
        Refusal::new(Refusal::INVALID_PARAMS, format!("the parameters can't be read: {error}"))
    })
}

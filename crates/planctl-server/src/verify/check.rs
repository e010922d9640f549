//! Verifies a plan file: reads it once, gathers what is true here, and lets the language judge. Needs no database.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use planctl_engine::{Call, Contract, Graph, GraphParts, Node, NodeKind, PaceLevel, RedFirst, Responder};
use planctl_harness::{
    Baseline, PATH_DEFAULT, PathKind, Spawner, Syntax, Unreadable, blocking_in_place, differing_from_head,
    existing_files, expand_glob, folder_in, probe_commands, probe_paths, probe_scripts, probe_texts,
    read_plan,
};
use planctl_lang::tools::{ToolList, ToolUse};
use planctl_lang::workflow::Workflow;
use planctl_lang::{
    Code, Diagnostic, Facts, FileFact, Judges, Levels, NextFact, Severity, Source, SpecialKind, SubPlanFact,
    Trial, Verification, Wants, read,
};

use crate::library::{Library, project_file};
use crate::verify::probe::{Probe, ProbeError, Probed};
use crate::verify::protection;
use crate::verify::tools::ToolPlace;
use planctl_api::wire::calls::RunPlanView;
use planctl_config::{Agent, Config};

/// The most files that a glob of a plan is expanded to while it is verified.
const GLOB_FILES_MAX: usize = 1000;
/// The most files of plans within a plan that are looked at while it is verified; a run looks at them all.
const SUB_PLANS_READ_MAX: usize = 1000;
/// The most files that are searched for what a contract asks of them.
const TEXTS_READ_MAX: usize = 1000;
/// The largest file that is searched.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Why a plan file can't even be verified.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file can't be read as a plan: missing, a directory, a pipe, too large, not permitted (row 64).
    #[error("read {}: {source}", file.display())]
    Unreadable {
        /// The file as it was named.
        file: PathBuf,
        /// The kind of file that it is, or the error of the system.
        #[source]
        source: Unreadable,
    },
    /// The workspace can't be looked at.
    #[error("look at the workspace {}: {source}", workspace.display())]
    Workspace {
        /// The workspace.
        workspace: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The contracts could not be tried.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Part of the verification ended without an answer: a defect of planctl.
    #[error("verify {}: {what}", file.display())]
    Broken {
        /// The file as it was named.
        file: PathBuf,
        /// The event.
        what: String,
    },
}

/// Where and with what a plan is verified.
#[derive(Clone, Copy, Debug)]
pub struct Checking<'a> {
    /// The canonical path of the workspace.
    pub workspace: &'a Path,
    /// The folder of the workspace in which the plan works, of one within another; empty where that is the workspace.
    pub folder: &'a str,
    /// The effective configuration.
    pub config: &'a Config,
    /// The state directory, where tools of servers are kept; without one, none are known.
    pub state_dir: Option<&'a Path>,
    /// The agent that serves every role (`--exec`, `--agent`), so that no role is unknown.
    pub worker: Option<&'a Agent>,
    /// How much each code weighs.
    pub levels: &'a Levels,
    /// Tries the contracts in a copy of the workspace; without it nothing of the plan is executed.
    pub probe: Option<&'a Probe>,
}

impl Checking<'_> {
    /// Returns where the plan works; files in a folder that is not there yet count as missing.
    fn place(&self) -> Result<PathBuf, CheckError> {
        if self.folder.is_empty() {
            return Ok(self.workspace.to_owned());
        }
        let named = self.workspace.join(self.folder);
        match folder_in(self.workspace, self.folder) {
            Ok(_) | Err(Unreadable::Missing) => Ok(named),
            Err(why) => Err(CheckError::Workspace { workspace: named, source: std::io::Error::other(why) }),
        }
    }
}

/// A plan file that was read and verified.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The file as it was named.
    pub file: PathBuf,
    /// The identity of the plan in its workspace: the relative path where it lies inside, else the absolute one.
    pub path: String,
    /// The folder of the workspace for which it was verified; empty where that is the workspace.
    pub folder: String,
    /// Its text.
    pub source: Source,
    /// The findings and the graph.
    pub verification: Verification,
    /// The protected files as they are now; part of the approval.
    pub baseline: Baseline,
    /// How many contracts were tried, where that was asked for.
    pub probed: Option<Probed>,
    /// The trials of its contracts, by step.
    pub trials: BTreeMap<u32, Trial>,
}

impl Checked {
    /// Returns the findings of a text that a run is to go on with. That it has marks which a run leaves is none: planctl has
    /// marked the file that was edited.
    pub fn findings_of_edit(&self) -> impl Iterator<Item = &Diagnostic> {
        let is_own_mark = |found: &Diagnostic| found.code == Code::P006 && found.level == Severity::Note;
        self.verification.diagnostics.iter().filter(move |found| !is_own_mark(found))
    }
}

/// Puts a plan that was sent as it runs back together.
pub fn restore_checked(plan: RunPlanView) -> Checked {
    let source = Source::new(&plan.path, plan.source);
    let verification = Verification::restored(&source, plan.graph, plan.digest);
    Checked {
        file: plan.file,
        path: plan.path,
        folder: String::new(),
        source,
        verification,
        baseline: plan.baseline,
        probed: None,
        trials: BTreeMap::new(),
    }
}

/// Returns what identifies a plan in its workspace.
pub fn plan_path(file: &Path, workspace: &Path) -> String {
    let name = file.file_name().map(OsString::from).unwrap_or_default();
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let absolute = match blocking_in_place(|| folder.canonicalize()) {
        Ok(folder) => folder.join(name),
        Err(_) => file.to_owned(),
    };
    absolute.strip_prefix(workspace).unwrap_or(&absolute).to_string_lossy().into_owned()
}

/// Verifies a plan file. Findings are no errors: they are in the answer.
///
/// # Errors
///
/// [`CheckError`] where the file or the workspace can't be read.
pub async fn check(file: &Path, checking: Checking<'_>, spawner: &Spawner) -> Result<Checked, CheckError> {
    check_bytes(file, read_bytes(file).await?, checking, spawner).await
}

/// Verifies the bytes of a plan as if they stood in a file; nothing needs to be there.
///
/// # Errors
///
/// [`CheckError`] where the workspace can't be read.
pub async fn check_bytes(
    file: &Path,
    bytes: Vec<u8>,
    checking: Checking<'_>,
    spawner: &Spawner,
) -> Result<Checked, CheckError> {
    let path = plan_path(file, checking.workspace);
    let source = match Source::from_bytes(file.to_string_lossy().into_owned(), bytes) {
        Ok(source) => source,
        Err(unreadable) => {
            return Ok(Checked {
                file: file.to_owned(),
                path,
                folder: checking.folder.to_owned(),
                verification: Verification::unreadable(&unreadable),
                source: unreadable.source,
                baseline: Baseline::default(),
                probed: None,
                trials: BTreeMap::new(),
            });
        }
    };
    check_text(file, path, source, checking, spawner).await
}

async fn read_bytes(file: &Path) -> Result<Vec<u8>, CheckError> {
    let named = file.to_owned();
    let read = tokio::task::spawn_blocking(move || read_plan(&named))
        .await
        .map_err(|error| CheckError::Broken { file: file.to_owned(), what: error.to_string() })?;
    read.map_err(|source| CheckError::Unreadable { file: file.to_owned(), source })
}

/// Verifies a plan's text as if it stood in a file; nothing needs to be there.
///
/// # Errors
///
/// [`CheckError`] where the workspace can't be looked at.
pub async fn check_text(
    file: &Path,
    path: String,
    source: Source,
    checking: Checking<'_>,
    spawner: &Spawner,
) -> Result<Checked, CheckError> {
    let broken = |what: String| CheckError::Broken { file: file.to_owned(), what };
    let (verification, probed, trials) = verify_source(file, &path, &source, checking, spawner).await?;
    let baseline = match &verification.graph {
        Some(graph) => {
            let (graph, place, own) = (graph.clone(), checking.place()?, checking.workspace.join(&path));
            let may_be_later = !checking.folder.is_empty();
            let taken = move || match may_be_later && !place.exists() {
                true => Ok(protection::baseline_of_nothing(&graph)),
                false => protection::baseline_of_plan(&graph, &place, &own),
            };
            let taken =
                tokio::task::spawn_blocking(taken).await.map_err(|error| broken(error.to_string()))?;
            taken.map_err(|error| broken(error.to_string()))?
        }
        None => Baseline::default(),
    };
    let folder = checking.folder.to_owned();
    Ok(Checked { file: file.to_owned(), path, folder, source, verification, baseline, probed, trials })
}

/// Verifies a plan's text without a look at protected files, as an editor asks at each key.
///
/// # Errors
///
/// [`CheckError`] where the workspace can't be looked at.
pub async fn verify_text(
    file: &Path,
    path: &str,
    source: &Source,
    checking: Checking<'_>,
    spawner: &Spawner,
) -> Result<Verification, CheckError> {
    let checking = Checking { probe: None, ..checking };
    Ok(verify_source(file, path, source, checking, spawner).await?.0)
}

async fn verify_source(
    file: &Path,
    path: &str,
    source: &Source,
    checking: Checking<'_>,
    spawner: &Spawner,
) -> Result<(Verification, Option<Probed>, BTreeMap<u32, Trial>), CheckError> {
    let plan = read(source);
    let mut facts = facts(plan.wants(), checking, spawner).await?;
    facts.plan_is_inside = Some(!Path::new(path).is_absolute());
    let mut probed = None;
    if let Some(probe) = checking.probe {
        // The findings about contracts decide which of them can be tried, at the default levels: configured levels change
        // nothing about that.
        let found = read(source).judge(&facts, &Levels::default());
        let (trials, tried) = probe.trials(&found, &checking.place()?, checking.config).await?;
        facts.trials = trials.into_iter().collect();
        probed = Some(tried);
    }
    let trials = facts.trials.clone();
    let mut verification = plan.judge(&facts, checking.levels);
    if let Some(graph) = verification.graph.take() {
        let graph = with_configuration(graph, &verification.workflow, checking.config);
        let broken = |what| CheckError::Broken { file: file.to_owned(), what };
        verification.graph = Some(graph.map_err(broken)?);
    }
    Ok((verification, probed, trials))
}

async fn facts(wants: Wants, checking: Checking<'_>, spawner: &Spawner) -> Result<Facts, CheckError> {
    let workspace = checking.place()?;
    let path = search_path(checking.config);
    let scripts = wants.scripts.clone();
    let compared = wants.compared.clone();
    let (searched, looked_at) = (path.clone(), workspace.clone());
    let home = checking.workspace.to_owned();
    let files = tokio::task::spawn_blocking(move || {
        let facts = files_facts(&wants, &looked_at, &searched)?;
        Ok(with_next(with_sub_plans(facts, &wants, &home), &wants, &home))
    });
    let differing = differing(spawner, &workspace, &compared);
    let (syntax, files, differing) = tokio::join!(probe_scripts(spawner, scripts), files, differing);
    let wrong = |source| CheckError::Workspace { workspace: workspace.clone(), source };
    let mut facts = files.map_err(|error| wrong(std::io::Error::other(error)))?.map_err(wrong)?;
    facts.differing = differing;
    facts.path = path.to_string_lossy().into_owned();
    facts.syntax =
        syntax.into_iter().filter_map(|(script, syntax)| Some((script, verdict(syntax)?))).collect();
    facts.serves_every_role = checking.worker.is_some();
    match checking.worker {
        Some(worker) => facts.unpriced_worker = worker.is_unpriced(&checking.config.prices),
        None => facts.unpriced_roles = unpriced_roles(checking.config),
    }
    let roles = &checking.config.roles;
    let serving = roles
        .iter()
        .flat_map(|(name, role)| role.types.iter().map(|own| (own.clone(), name.as_str().to_owned())));
    facts.types = serving.collect();
    let denying = roles.iter().filter(|(_, role)| !role.effects.deny.is_empty());
    facts.denied =
        denying.map(|(name, role)| (name.as_str().to_owned(), role.effects.deny.clone())).collect();
    facts.servers = Some(servers(checking));
    let judges = &checking.config.judges;
    facts.judges = Some(Judges {
        names: judges.by.iter().map(|judge| judge.name.clone()).collect(),
        alone: judges.alone,
    });
    facts.roles = (!roles.is_empty() && checking.worker.is_none())
        .then(|| roles.keys().map(|role| role.as_str().to_owned()).collect());
    Ok(facts)
}

/// Returns the servers, each with its tools as they are kept: to verify a plan starts nothing.
fn servers(checking: Checking<'_>) -> BTreeMap<String, Option<ToolList>> {
    let list = |name: &str| {
        let place = ToolPlace {
            workspace: checking.workspace,
            state_dir: checking.state_dir?,
            config: checking.config,
        };
        place.cached_tools(name)
    };
    checking.config.servers.keys().map(|name| (name.clone(), list(name))).collect()
}

/// Returns which of the files that contracts compare with their commit differ from it; nothing where git could not be asked.
async fn differing(
    spawner: &Spawner,
    workspace: &Path,
    compared: &BTreeSet<String>,
) -> Option<BTreeSet<String>> {
    let paths = compared.iter().map(String::as_str);
    let differing = differing_from_head(spawner, workspace, paths).await.ok()?;
    Some(differing.into_iter().collect())
}

/// Returns what the language wants to know of `bash -n`; nothing where it could not be asked.
fn verdict(syntax: Syntax) -> Option<Option<String>> {
    match syntax {
        Syntax::Accepted => Some(None),
        Syntax::Refused { message, line: Some(line) } => Some(Some(format!("line {line}: {message}"))),
        Syntax::Refused { message, line: None } => Some(Some(message)),
        Syntax::Unchecked { .. } => None,
    }
}

fn files_facts(wants: &Wants, workspace: &Path, path: &std::ffi::OsStr) -> std::io::Result<Facts> {
    let kinds = match probe_paths(workspace, wants.files.iter().map(String::as_str)) {
        // The folder of a sub-plan, which an earlier step may make.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            wants.files.iter().map(|path| (path.clone(), PathKind::Missing)).collect()
        }
        kinds => kinds?,
    };
    let is_any_missing = kinds.values().any(|kind| *kind == PathKind::Missing);
    let globs = wants.globs.iter().filter_map(|glob| {
        let found = expand_glob(workspace, glob, GLOB_FILES_MAX).ok()?;
        Some((glob.clone(), found.files))
    });
    // Without the workspace there are no texts, either.
    let texts = wants.texts.iter().take(TEXTS_READ_MAX).map(String::as_str);
    let texts = probe_texts(workspace, texts, TEXT_BYTES_MAX).unwrap_or_default();
    Ok(Facts {
        texts,
        files: kinds.into_iter().map(|(path, kind)| (path, fact(kind))).collect(),
        existing: if is_any_missing { existing_files(workspace) } else { Vec::new() },
        globs: globs.collect::<BTreeMap<_, _>>(),
        commands: probe_commands(workspace, path, wants.commands.iter().map(String::as_str)),
        ..Facts::default()
    })
}

/// Adds the facts about the files of sub-plans, which lie in the workspace even where the plan works in a folder of it.
fn with_sub_plans(mut facts: Facts, wants: &Wants, workspace: &Path) -> Facts {
    let named = wants.sub_plans.iter().take(SUB_PLANS_READ_MAX);
    facts.sub_plans = named.map(|path| (path.clone(), sub_plan_fact(workspace, path))).collect();
    if facts.sub_plans.values().any(|fact| *fact == SubPlanFact::Missing) {
        facts.existing_around = existing_files(workspace);
    }
    facts
}

/// Adds whether the plan that is to follow is there.
fn with_next(mut facts: Facts, wants: &Wants, workspace: &Path) -> Facts {
    let Some(next) = &wants.next else { return facts };
    if project_file(workspace, next).is_some() {
        facts.next = Some(NextFact::Found);
        return facts;
    }
    let user = planctl_config::user_folder(&|name| std::env::var_os(name));
    let library = Library::read(workspace, user.as_deref());
    facts.next = Some(match library.entry(next) {
        Some(_) => NextFact::Found,
        None => NextFact::Missing { others: library.names(workspace) },
    });
    facts
}

fn sub_plan_fact(workspace: &Path, path: &str) -> SubPlanFact {
    match read_plan(&workspace.join(path)) {
        Ok(bytes) => match Source::from_bytes(path, bytes) {
            Ok(_) => SubPlanFact::Readable,
            Err(unreadable) => SubPlanFact::Refused { why: unreadable.diagnostic.message },
        },
        Err(Unreadable::Missing) => SubPlanFact::Missing,
        Err(why) => SubPlanFact::Refused { why: why.to_string() },
    }
}

fn fact(kind: PathKind) -> FileFact {
    match kind {
        PathKind::Missing => FileFact::Missing,
        PathKind::Regular { bytes, .. } => FileFact::Regular { size: bytes },
        PathKind::Directory => FileFact::Directory,
        PathKind::Outside { target } => FileFact::Outside {
            target: target.map(|target| target.to_string_lossy().into_owned()).unwrap_or_default(),
        },
        PathKind::Special(word) => FileFact::Special {
            special: match word {
                "named pipe" => SpecialKind::Fifo,
                "socket" => SpecialKind::Socket,
                _ => SpecialKind::Device,
            },
        },
        PathKind::Unreadable { reason } => FileFact::Unreadable { reason },
    }
}

/// Returns the roles whose agent is known to report tokens and never money; a script of one's own may report both.
fn unpriced_roles(config: &Config) -> Vec<String> {
    let is_unpriced = |agent: &Agent| agent.is_unpriced(&config.prices);
    let served = config.roles.iter().filter(|(_, role)| role.agent.as_ref().is_some_and(is_unpriced));
    served.map(|(name, _)| name.as_str().to_owned()).collect()
}

/// Returns the search path of contracts: configured directories, then the fixed one.
pub fn search_path(config: &Config) -> OsString {
    joined_path(&config.contracts.path)
}

pub(crate) fn joined_path(configured: &[PathBuf]) -> OsString {
    let mut path = OsString::new();
    for folder in configured {
        path.push(folder);
        path.push(":");
    }
    path.push(PATH_DEFAULT);
    path
}

/// Puts what is configured where the plan says nothing: timeouts, what is asked of contracts before the work, and who takes
/// over from a role. It is approved with the plan.
fn with_configuration(graph: Graph, workflow: &Workflow, config: &Config) -> Result<Graph, String> {
    let work = |role: &str| {
        config.roles.iter().find(|(name, _)| name.as_str() == role).and_then(|(_, role)| role.timeout)
    };
    let graph = with_approvals(graph, config)?;
    let contracts = &config.contracts;
    let has_none = config.roles.is_empty() && config.judges.is_none();
    if has_none && contracts.timeout.is_none() && contracts.red_first == RedFirst::Off {
        return Ok(graph);
    }
    let steps = workflow.steps().into_iter();
    let steps: BTreeMap<u32, _> = steps.filter_map(|step| Some((step.number?, step))).collect();
    let mut parts = GraphParts::from(graph);
    for node in &mut parts.nodes {
        let Some(step) = node.step().and_then(|number| steps.get(&number)) else { continue };
        let said = &step.attributes;
        if let (None, Some(timeout), Some(contract)) =
            (said.contract_timeout.value(), contracts.timeout, contract_of(&mut node.kind))
        {
            contract.timeout = timeout;
        }
        let NodeKind::Task(task) = &mut node.kind else { continue };
        if planctl_lang::red_first(workflow, step).is_none() {
            task.contract.red_first = config.contracts.red_first;
        }
        if let (Some(judge), Some(usual)) = (&mut task.contract.judge, config.judges.by.first())
            && judge.by.is_empty()
        {
            judge.by.clone_from(&usual.name);
        }
        if let Some(judge) = &mut task.contract.judge {
            judge.approval = config.judges.asks_person(&judge.by);
        }
        if let (None, Some(timeout)) = (said.timeout.value(), work(task.role.as_str())) {
            task.work_timeout = timeout;
        }
        let levels = config.roles.get(&task.role).into_iter().flat_map(|role| role.pace.levels());
        task.pace = levels
            .map(|(level, responder)| {
                let timeout = match responder {
                    Responder::Role(role) if said.timeout.value().is_none() => work(role.as_str()),
                    Responder::Role(_) | Responder::Human => None,
                };
                PaceLevel { level, responder: responder.clone(), timeout }
            })
            .collect();
    }
    Graph::new(parts).map_err(|defect| defect.to_string())
}

/// Has a person asked before each call of a tool whose effects ask for that, by what its role may do (M-34, M-36, M-37).
fn with_approvals(graph: Graph, config: &Config) -> Result<Graph, String> {
    let asks = |call: &Call| {
        let used = ToolUse::read(&call.contract.command)?;
        let declared = config.servers.get(&used.server).and_then(|server| server.effects_of(&used.tool));
        config.effects_of(call.role.as_ref()).asks(declared)
    };
    let is_asked = |node: &Node| node.call().is_some_and(|call| asks(call).is_some());
    if !graph.nodes().iter().any(is_asked) {
        return Ok(graph);
    }
    let mut parts = GraphParts::from(graph);
    for node in &mut parts.nodes {
        if let NodeKind::Call(call) = &mut node.kind {
            call.approval = asks(call);
        }
    }
    Graph::new(parts).map_err(|defect| defect.to_string())
}

fn contract_of(kind: &mut NodeKind) -> Option<&mut Contract> {
    match kind {
        NodeKind::Task(task) => Some(&mut task.contract),
        NodeKind::Call(call) => Some(&mut call.contract),
        NodeKind::Decision(choice) => choice.command.as_deref_mut(),
        NodeKind::Start
        | NodeKind::Human(_)
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::Join(_)
        | NodeKind::SubPlan(_)
        | NodeKind::Escalate { .. }
        | NodeKind::Exit { .. } => None,
    }
}

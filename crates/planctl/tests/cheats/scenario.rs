//! Reads the scenarios of the kit.
//!
//! Each file of `kit/` is a category. A heading `## ID: what it does` begins a scenario, lines `key: value` follow, then
//! fences of bash with a name: the actions of the worker, the person or the plan. `projects.md` holds what scenarios begin
//! with: `project: NAME` takes over each fence and key that the scenario does not have itself.
//!
//! | key | means |
//! |---|---|
//! | `sources` | the rows of docs/security.md that it belongs to: `A9, R-07` |
//! | `verdict` | what the cheat's run may say, one of them: `tampered, failed`; `refused` where no run begins |
//! | `names` | texts that the record of the cheat must hold, with `·` between them |
//! | `open` | tiers in which the cheat succeeds; checked as such |
//! | `open_because` | why |
//! | `needs` | programs without which it is not run |
//! | `slow` | `yes`: only in `just cheats` |
//! | `bare` | `no`: the cheat is not one that a plain `worker; contract` would fall for |
//! | `database` | `own`: with a private Postgres, as people have |
//! | `done` | `may`: the run may end done; `held` alone decides |
//!
//! | fence | is |
//! |---|---|
//! | `setup` | makes the project, before anything is approved |
//! | `task`, `fields`, `contract` | those of the only step; or `steps`, the whole of `## Steps`; or `dot`, a graph |
//! | `cheat`, `twin`, `worker` | the worker of each: `worker` is that of an honest flow |
//! | `drive` | what the person types; `run` without it |
//! | `configuration`, `environment` | lines of the person's `[contracts]`; variables that planctl is started with |
//! | `held` | looks afterwards whether the attack failed; anything but 0 is a success of the attack |

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::place::Part;
use crate::tier::Tier;

/// All scenarios.
pub struct Kit {
    pub scenarios: Vec<Arc<Scenario>>,
    /// The rows of the table: their names and what they are, in their order.
    pub attacks: Vec<(String, String)>,
}

/// One cheat with its twin, or one honest flow.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file it stands in.
    pub category: String,
    pub id: String,
    /// Its description in plain words.
    pub says: String,
    keys: BTreeMap<String, String>,
    fences: BTreeMap<String, String>,
}

impl Kit {
    /// Reads the folder; a mistake in it is a panic that names the file.
    pub fn read() -> Kit {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cheats/kit");
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut read: Vec<Scenario> = Vec::new();
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
            let category = file.file_stem().unwrap().to_string_lossy().into_owned();
            read.extend(scenarios(&category, &std::fs::read_to_string(file).unwrap()));
        }
        let (attacks, read): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|scenario| scenario.category == "attacks");
        let attacks: Vec<_> = attacks.into_iter().map(|attack| (attack.id, attack.says)).collect();
        let (projects, scenarios): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|scenario| scenario.category == "projects");
        let complete = |scenario: Scenario| Arc::new(scenario.on(&projects).checked());
        let scenarios: Vec<_> = scenarios.into_iter().map(complete).collect();
        let mut ids: Vec<&str> = scenarios.iter().map(|scenario| scenario.id.as_str()).collect();
        ids.sort_unstable();
        for pair in ids.windows(2) {
            assert_ne!(pair[0], pair[1], "two scenarios have one id");
        }
        Kit { scenarios, attacks }
    }

    pub fn cheats(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.iter().map(Arc::as_ref).filter(|scenario| scenario.is_cheat())
    }

    /// Returns the ids of the short form: in the order of the files, each scenario with a family that none before it has.
    pub fn short_form(&self) -> BTreeSet<String> {
        let mut covered: BTreeSet<String> = BTreeSet::new();
        let quick = self.scenarios.iter().filter(|scenario| !scenario.is_slow());
        let chosen = quick.filter(|scenario| {
            let families = scenario.families();
            let is_new = families.iter().any(|family| !covered.contains(family));
            if is_new {
                covered.extend(families);
            }
            is_new
        });
        chosen.map(|scenario| scenario.id.clone()).collect()
    }
}

impl Scenario {
    pub fn is_cheat(&self) -> bool {
        self.fences.contains_key("cheat")
    }

    /// Returns what it is an example of: its file, its attacks, its project, its programs and its verdicts.
    fn families(&self) -> Vec<String> {
        let kind = if self.is_cheat() { "cheat" } else { "flow" };
        let all = [("sources", self.sources()), ("needs", self.list("needs")), ("verdict", self.verdicts())];
        let project = self.value("project").map(|project| format!("{kind} project {project}"));
        let lists = all
            .into_iter()
            .flat_map(|(name, list)| list.into_iter().map(move |one| format!("{kind} {name} {one}")));
        lists.chain(project).chain([format!("{kind} in {}", self.category)]).collect()
    }

    pub fn is_slow(&self) -> bool {
        self.key_is("slow", "yes")
    }

    pub fn has_bare_proof(&self) -> bool {
        !self.key_is("bare", "no")
    }

    pub fn has_own_database(&self) -> bool {
        self.key_is("database", "own")
    }

    pub fn may_be_done(&self) -> bool {
        self.key_is("done", "may")
    }

    pub fn is_open_at(&self, tier: &Tier) -> bool {
        self.list("open").contains(&tier.name)
    }

    pub fn why_open(&self) -> Option<&str> {
        self.keys.get("open_because").map(String::as_str)
    }

    pub fn sources(&self) -> Vec<&str> {
        self.list("sources")
    }

    pub fn verdicts(&self) -> Vec<&str> {
        self.list("verdict")
    }

    pub fn names(&self) -> Vec<&str> {
        let all = self.keys.get("names").map(String::as_str).unwrap_or_default();
        all.split('·').map(str::trim).filter(|name| !name.is_empty()).collect()
    }

    pub fn missing_programs(&self, tier: &Tier) -> Vec<&str> {
        self.list("needs").into_iter().filter(|program| !crate::place::has_program(program, tier)).collect()
    }

    /// Returns a fence, or nothing where it has none.
    pub fn fence(&self, name: &str) -> &str {
        self.fences.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn worker(&self, part: Part) -> &str {
        self.fence(match part {
            Part::Cheat => "cheat",
            Part::Twin => "twin",
            Part::Flow => "worker",
        })
    }

    /// Returns what the person types: for the cheat and its twin the same.
    pub fn drive(&self) -> &str {
        self.fences.get("drive").map_or("run", String::as_str)
    }

    /// Returns the plan's file name and its text.
    pub fn plan(&self) -> (&'static str, String) {
        if let Some(graph) = self.fences.get("dot") {
            return ("plan.dot", graph.clone());
        }
        let steps = self.fences.get("steps").cloned().unwrap_or_else(|| self.only_step());
        let head = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n";
        ("plan.md", format!("{head}# {}\n\n**Budget:** 20 minutes\n\n## Steps\n\n{steps}", title(&self.id)))
    }

    /// Returns the contracts of the plan in their order.
    pub fn contracts(&self) -> Vec<String> {
        let (_, plan) = self.plan();
        let fences = plan.split("**contract:**").skip(1);
        fences.filter_map(|rest| Some(rest.split("```").nth(1)?.split_once('\n')?.1.to_owned())).collect()
    }

    /// Tells whether two performances would be the same.
    pub fn key(&self, part: Part) -> String {
        let (name, plan) = self.plan();
        let plan = plan.replace(&title(&self.id), "");
        let parts = [
            name,
            &plan,
            self.fence("setup"),
            self.worker(part),
            self.drive(),
            self.fence("held"),
            self.fence("configuration"),
            self.fence("environment"),
            self.keys.get("exec").map(String::as_str).unwrap_or_default(),
            if self.has_own_database() { "own" } else { "" },
        ];
        parts.join("\n----\n")
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    fn only_step(&self) -> String {
        format!(
            "### 1. Mend it\n\n**target:** coder\n{}\n**task:**\n{}\n**contract:**\n```bash\n{}```\nexit_code == 0\n**on_fail:** {}\n",
            self.fence("fields"),
            self.fence("task"),
            self.fence("contract"),
            self.value("on_fail").unwrap_or("abort"),
        )
    }

    fn key_is(&self, key: &str, value: &str) -> bool {
        self.keys.get(key).is_some_and(|found| found == value)
    }

    fn list(&self, key: &str) -> Vec<&str> {
        let all = self.keys.get(key).map(String::as_str).unwrap_or_default();
        all.split(',').map(str::trim).filter(|one| !one.is_empty()).collect()
    }

    /// Takes over what the project has and the scenario does not.
    fn on(mut self, projects: &[Scenario]) -> Scenario {
        let Some(name) = self.keys.get("project") else { return self };
        let project = projects.iter().find(|project| project.id == *name);
        let project = project.unwrap_or_else(|| panic!("{}: there is no project {name}", self.id));
        // A plan that the scenario brings replaces the project's whole plan.
        let has_plan = self.fences.contains_key("steps") || self.fences.contains_key("dot");
        for (name, text) in &project.fences {
            let is_of_plan = ["task", "fields", "contract"].contains(&name.as_str());
            // The project's honest worker is the twin of a cheat, and the worker of a flow.
            let name = if name == "twin" && !self.fences.contains_key("cheat") { "worker" } else { name };
            if !(has_plan && is_of_plan) {
                self.fences.entry(name.to_owned()).or_insert_with(|| text.clone());
            }
        }
        for (key, value) in &project.keys {
            self.keys.entry(key.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    fn checked(self) -> Scenario {
        const KEYS: &[&str] = &[
            "sources",
            "verdict",
            "names",
            "open",
            "open_because",
            "needs",
            "slow",
            "bare",
            "database",
            "done",
            "project",
            "on_fail",
            "exec",
        ];
        const FENCES: &[&str] = &[
            "setup",
            "task",
            "fields",
            "contract",
            "steps",
            "dot",
            "cheat",
            "twin",
            "worker",
            "drive",
            "held",
            "configuration",
            "environment",
        ];
        let unknown = self.keys.keys().find(|key| !KEYS.contains(&key.as_str()));
        let unknown = unknown.or_else(|| self.fences.keys().find(|name| !FENCES.contains(&name.as_str())));
        assert!(unknown.is_none(), "{}: {} is unknown", self.id, unknown.unwrap());
        let has_worker = if self.is_cheat() { "twin" } else { "worker" };
        assert!(self.fences.contains_key(has_worker), "{} has no {has_worker}", self.id);
        assert!(!self.is_cheat() || !self.verdicts().is_empty(), "{} has no verdict", self.id);
        assert!(self.list("open").is_empty() == self.why_open().is_none(), "{}: open, and why?", self.id);
        self
    }
}

fn title(id: &str) -> String {
    format!("Scenario {id}")
}

fn scenarios(category: &str, text: &str) -> Vec<Scenario> {
    let mut found: Vec<Scenario> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            let (id, says) = heading.split_once(": ").unwrap_or_else(|| panic!("{category}: {heading}"));
            found.push(Scenario {
                category: category.to_owned(),
                id: id.to_owned(),
                says: says.to_owned(),
                keys: BTreeMap::new(),
                fences: BTreeMap::new(),
            });
        } else if line.starts_with("```") {
            let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
            let name = line.split_whitespace().nth(1).unwrap_or_else(|| panic!("{category}: {line}"));
            let end = "`".repeat(ticks);
            let mut fence = String::new();
            for line in lines.by_ref().take_while(|line| *line != end) {
                fence.push_str(line);
                fence.push('\n');
            }
            let scenario = found.last_mut().unwrap_or_else(|| panic!("{category}: a fence before a heading"));
            let before = scenario.fences.insert(name.to_owned(), fence);
            assert!(before.is_none(), "{}: two fences {name}", scenario.id);
        } else if let (Some(scenario), Some((key, value))) = (found.last_mut(), line.split_once(": ")) {
            scenario.keys.insert(key.trim().to_owned(), value.trim().to_owned());
        } else {
            assert!(found.is_empty() || line.is_empty(), "{category}: `{line}` is not a key");
        }
    }
    found
}

//! A step that two workers try one after the other.

use std::fs;
use std::process::Output;

use serde_json::Value;

use super::{Home, told};

/// A committed workspace with a plan of one step.
pub struct Tried {
    home: Home,
}

impl Tried {
    /// Makes the workspace by a script, and commits it with the plan.
    pub fn begin(step: &str, before: &str) -> Tried {
        let tried = Tried { home: Home::new() };
        fs::create_dir(tried.home.workspace()).unwrap();
        let plan =
            format!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Tried\n\n## Steps\n\n{step}");
        fs::write(tried.home.workspace().join("plan.md"), plan).unwrap();
        tried.home.holds(before);
        tried.home.holds(
            "git init -q; git add .; git -c user.name=ann -c user.email=ann@example.org commit -qm begin",
        );
        tried
    }

    fn planctl(&self, words: &[&str]) -> Output {
        let mut planctl = self.home.command(env!("CARGO_BIN_EXE_planctl"));
        planctl.arg("-C").arg(self.home.workspace()).args(words).output().unwrap()
    }

    /// Returns the codes of what `plan verify` finds, but for the roles that no planctl.toml configures.
    pub fn findings(&self, flags: &[&str]) -> Vec<String> {
        let output = self.planctl(&[&["plan", "verify", "plan.md", "--format", "json"], flags].concat());
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
        let report = report.as_array().map_or(&report, |reports| &reports[0]);
        let found = report["diagnostics"].as_array().unwrap();
        let codes = found.iter().map(|found| found["code"].as_str().unwrap().to_owned());
        codes.filter(|code| code != "P402").collect()
    }

    /// Runs the plan with a script for each attempt; returns how it went, and the verdicts.
    pub fn run(&self, attempts: [&str; 2]) -> (Output, Vec<&'static str>) {
        let worker = self.home.folder.path().join("worker.sh");
        let [first, second] = attempts;
        let work =
            format!("set -euo pipefail\nif (($PLANCTL_ATTEMPT == 1)); then\n{first}\nelse\n{second}\nfi\n");
        fs::write(&worker, work).unwrap();
        let exec = format!("bash {}", worker.display());
        let ran = self.planctl(&["plan", "run", "plan.md", "--approve", "--no-wait", "--exec", &exec]);
        let events = self.planctl(&["events", "--run", "@last", "--format", "jsonl"]);
        let lines = String::from_utf8(events.stdout).unwrap();
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = events
            .filter(|event| event["event"] == "harness.evaluated")
            .map(|event| verdict(&event["found"]));
        (ran, found.collect())
    }
}

fn verdict(found: &Value) -> &'static str {
    match found["tampered"].as_array() {
        Some(files) if !files.is_empty() => "tampered",
        _ if found["ending"]["code"] == 0 => "passed",
        _ => "failed",
    }
}

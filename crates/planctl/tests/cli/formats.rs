//! The formats of `plan verify` for code hosts: SARIF held against the standard's own schema, workflow commands.

use serde_json::Value;

use crate::fixture::{Fixture, Said, plan};

const SARIF: &str = include_str!("sarif/sarif-schema-2.1.0.json");

/// A plan whose contract stands on a line with a tab, a wide and a combining character before the finding.
fn broken() -> String {
    let contract = "printf '日本 e\u{301}' > /dev/null &&\tgrpe -q x one.txt";
    plan("Two", "5 minutes", &[("First", contract, "ignore"), ("Second", "test -s two.txt || true", "abort")])
}

fn sarif(said: &Said) -> Value {
    let log: Value = serde_json::from_str(&said.out).unwrap();
    // One pattern has a bracket too many, which not every reader of patterns forgives.
    let schema = SARIF.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}?$");
    let validator = jsonschema::draft7::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&log).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{log:#}");
    log
}

fn result<'a>(log: &'a Value, code: &str) -> &'a Value {
    let results = log["runs"][0]["results"].as_array().unwrap();
    results.iter().find(|result| result["ruleId"] == code).unwrap_or_else(|| panic!("no {code} in {log:#}"))
}

#[test]
fn sarif_fits_the_standard_and_its_columns_count_code_points() {
    let fixture = Fixture::new();
    fixture.write("plans/a b.md", &broken()).write("c.md", "no plan\n");
    let said =
        fixture.planctl(&["plan", "verify", "plans/a b.md", "c.md", "missing.md", "--format", "sarif"]);
    assert_eq!(said.code, 4);
    let log = sarif(&said);
    let run = &log["runs"][0];
    assert_eq!((log["runs"].as_array().unwrap().len(), &run["columnKind"]), (1, &"unicodeCodePoints".into()));
    let found = result(&log, "P102");
    let place = &found["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "plans/a%20b.md");
    assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    let text = broken();
    let (line, before) = text
        .lines()
        .enumerate()
        .find_map(|(at, line)| line.find("grpe").map(|byte| (at + 1, line[..byte].chars().count())))
        .unwrap();
    assert_eq!(
        place["region"],
        serde_json::json!({
            "startLine": line, "endLine": line, "startColumn": before + 1, "endColumn": before + 5
        })
    );
    let rule =
        &run["tool"]["driver"]["rules"][usize::try_from(found["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(rule["id"], "P102");
    assert!(
        rule["help"]["markdown"].as_str().unwrap().len()
            > rule["shortDescription"]["text"].as_str().unwrap().len()
    );
    let results = run["results"].as_array().unwrap();
    let missing = results.iter().find(|one| one["locations"][0].to_string().contains("missing.md")).unwrap();
    assert!(missing["message"]["text"].as_str().unwrap().contains("does not exist"));
    let mut prints: Vec<String> = results
        .iter()
        .map(|one| {
            format!(
                "{}{}",
                one["partialFingerprints"], one["locations"][0]["physicalLocation"]["artifactLocation"]
            )
        })
        .collect();
    let all = prints.len();
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), all, "every finding has a fingerprint of its own");
}

#[test]
fn a_fingerprint_stays_where_text_is_added_above() {
    let fixture = Fixture::new();
    let print = |text: &str| {
        fixture.write("p.md", text);
        let log = sarif(&fixture.planctl(&["plan", "verify", "p.md", "--format", "sarif"]));
        result(&log, "P104")["partialFingerprints"].clone()
    };
    let before = print(&broken());
    assert_eq!(
        before,
        print(&broken().replace("## Steps\n", "Words about it.\n\nMore words.\n\n## Steps\n"))
    );
}

#[test]
fn sarif_carries_fixes() {
    let fixture = Fixture::new();
    fixture.write("p.md", &broken().replace("**target:** coder", "**targt:** coder"));
    let log = sarif(&fixture.planctl(&["plan", "verify", "p.md", "--format", "sarif"]));
    let results = log["runs"][0]["results"].as_array().unwrap();
    let fix = results.iter().find_map(|one| one.get("fixes")).unwrap_or_else(|| panic!("{log:#}"));
    assert!(
        fix[0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"].is_string(),
        "{fix:#}"
    );
}

/// A plan that allows a finding in its first step.
fn allowing() -> String {
    let comment = "<!-- planctl: allow P110 the first only fills the log -->";
    let steps = [("First", "grep -q x one.txt\ntest -s one.txt", "abort")];
    plan("One", "5 minutes", &steps).replacen("**target:**", &format!("{comment}\n**target:**"), 1)
}

#[test]
fn findings_that_the_plan_allows_are_counted_and_named_to_who_asks() {
    let fixture = Fixture::new();
    fixture.write("p.md", &allowing());
    let said = fixture.planctl(&["verify", "p.md", "-A", "P402", "-D", "warnings"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("no problems, 1 finding allowed in the plan\n"), "{said:?}");
    assert!(!said.out.contains("P110"), "{said:?}");
    let line = "allowed[P110]: p.md:20: a failure before the last command does not count; the plan says: the first only fills the log";
    let verbose = fixture.planctl(&["verify", "p.md", "-v"]);
    let told = verbose.out.lines().find(|line| line.starts_with("allowed"));
    assert_eq!(
        told.map(|line| line.replace(|c: char| c.is_ascii_digit(), "#")),
        Some(line.replace(|c: char| c.is_ascii_digit(), "#"))
    );
    let json: Value = serde_json::from_str(&fixture.planctl(&["verify", "p.md", "--json"]).out).unwrap();
    assert_eq!(json["allowed"][0]["finding"]["code"], "P110");
    assert_eq!(json["allowed"][0]["reason"], "the first only fills the log");
    let log = sarif(&fixture.planctl(&["verify", "p.md", "--format", "sarif"]));
    let suppression = &result(&log, "P110")["suppressions"][0];
    assert_eq!(
        (&suppression["kind"], &suppression["justification"]),
        (&"inSource".into(), &"the first only fills the log".into())
    );
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|one| one["suppressions"].is_array()), "all or none: {log:#}");
    let denied = fixture.planctl(&["verify", "p.md", "-D", "P110"]);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.out.contains("the plan allows it; here its code is denied by name"), "{denied:?}");
}

#[test]
fn github_gets_one_command_a_finding_with_paths_from_the_repository_s_root() {
    let fixture = Fixture::new();
    assert!(
        std::process::Command::new("git")
            .args(["init", "-q"])
            .arg(fixture.path(""))
            .status()
            .unwrap()
            .success()
    );
    fixture.write("sub/p.md", &broken());
    let workspace = fixture.path("sub");
    let words =
        ["plan", "verify", "sub/p.md", "--format", "github", "--workspace", workspace.to_str().unwrap()];
    let said = fixture.planctl(&words);
    let line = said.out.lines().find(|line| line.contains("P102")).unwrap();
    assert!(line.starts_with("::error file=sub/p.md,line="), "{line}");
    assert!(
        line.contains(",title=P102 a command is not on the PATH::`grpe` is not on the PATH%0A"),
        "{line}"
    );
    assert!(said.out.lines().all(|line| line.starts_with("::")), "{}", said.out);
}

#[test]
fn plain_is_one_line_a_finding() {
    let fixture = Fixture::new();
    fixture.write("p.md", &broken());
    let said = fixture.planctl(&["plan", "verify", "p.md", "--format", "plain", "missing.md"]);
    assert!(said.out.contains(" error[P102]: `grpe` is not on the PATH"), "{}", said.out);
    assert!(said.out.contains("\np.md: not verified, "), "{}", said.out);
    assert!(
        said.out.ends_with("missing.md: error[P003]: could not read missing.md: it does not exist\n"),
        "{}",
        said.out
    );
}

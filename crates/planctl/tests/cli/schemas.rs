//! `planctl schema`: its output is a schema, means something, and agrees with the reader about planctl.toml. That every
//! answer fits its schema is checked wherever a test reads JSON.

use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::fixture::schema::schema;

fn names(fixture: &Fixture) -> Vec<String> {
    let list = fixture.json(&["schema", "--json"]);
    list["schemas"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_schema_is_printed_is_a_good_one_and_refuses_what_it_does_not_know() {
    let fixture = Fixture::new();
    let names = names(&fixture);
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let printed = fixture.planctl(&["schema", &name]);
        let schema: Value =
            serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {printed:?}"));
        assert_eq!(schema, self::schema(&name), "other tests check answers by the same one");
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        assert!(!validator.is_valid(&json!({ "surely": "unknown" })), "{name}");
        assert!(!validator.is_valid(&json!("text")), "{name}");
    }
}

#[test]
fn states_are_listed_and_fields_that_may_be_null_are_there() {
    let run = schema("plan-status");
    let states = run["$defs"]["RunState"].to_string();
    assert!(states.contains("awaiting_approval") && states.contains("cancelled"), "{states}");
    let required = run["$defs"]["RunView"]["required"].as_array().unwrap();
    assert!(required.contains(&json!("waiting_on")) && required.contains(&json!("ended_at")), "{required:?}");
    let finding = schema("plan-verify")["$defs"]["Finding"].clone();
    assert!(finding["properties"]["code"]["enum"].as_array().unwrap().contains(&json!("P104")));
}

#[test]
fn an_unknown_schema_is_refused_with_the_nearest() {
    let said = Fixture::new().planctl(&["schema", "plan-verfy"]);
    assert_eq!(said.code, 4);
    assert!(said.err.contains("did you mean `plan-verify`?"), "{said:?}");
}

const ACCEPTED: &[&str] = &[
    "[workspace]\nmode = \"worktree\"\ngit = \"commit\"\n",
    "[contracts]\nred_first = \"warn\"\n",
    "",
    "isolation = \"require:0\"\n[project]\nname = \"shop\"\n[contracts]\ntimeout = \"1h30m\"\nenv = { CI = \"1\" }\n\
     path = [\"/opt/tools/bin\"]\n[roles.coder]\nagent = \"exec:./code.sh\"\ntimeout = \"10m\"\nidle_timeout = \"90s\"\n\
     env = [\"API_KEY\"]\n[database]\nurl = \"postgres://me:secret@db/plans\"\n[postgres]\nbin_dir = \"/opt/pg/bin\"\n\
     download = false\n[verify]\nallow = [\"P104\"]\nwarn = [\"P102\"]\ndeny = [\"warnings\", \"P110\"]\n",
    "[roles.a]\nenv = { CI = \"1\" }\n[contracts]\ntimeout = \"2 days\"\n",
    "isolation = \"auto\"\n[verify]\n",
    "[roles.a]\nnetwork = \"none\"\n[roles.b]\nnetwork = [\"a.example\", \"*.b.example:8443\", \"[::1]:80\", \"::1\", \"10.0.0.1\"]\n",
    "[roles.coder]\nagent = \"claude\"\npermissions = \"ask\"\nallow = [\"Edit\", \"Bash(git *)\"]\nplans = [\"plans/*.md\"]\n\
     effects = { allow = [\"network\"], deny = [\"delete\"] }\n[roles.coder.pace]\nalternate = \"strong\"\nemergency = \"human\"\n\
     [roles.strong]\nagent = \"codex:-m 'gpt x'\"\npermissions = \"deny\"\n[prices.\"gpt x\"]\ninput = 1\noutput = 10.5\n",
];

const REFUSED: &[&str] = &[
    "isolatoin = \"auto\"\n",
    "isolation = \"require:3\"\n",
    "[contracts]\ntimout = \"1m\"\n",
    "[contracts]\ntimeout = 10\n",
    "[contracts]\ntimeout = \"10\"\n",
    "[contracts]\ntimeout = \"0s\"\n",
    "[contracts]\nred_first = \"yes\"\n",
    "[contracts]\npath = [\"bin\"]\n",
    "[contracts]\npath = \"/bin\"\n",
    "[contracts]\nenv = { PLANCTL_ITEM_ID = \"x\" }\n",
    "[contracts]\nenv = { \"a b\" = \"1\" }\n",
    "[contracts]\nenv = { A = 1 }\n",
    "[roles.coder]\nagnet = \"exec:x\"\n",
    "[roles.coder]\nagent = \"claud\"\n",
    "[roles.coder]\nnetwork = \"all\"\n",
    "[roles.coder]\nnetwork = []\n",
    "[roles.coder]\nnetwork = [\"*\"]\n",
    "[roles.coder]\nnetwork = [\"https://a.example\"]\n",
    "[roles.coder]\npermissions = \"aks\"\n",
    "[roles.coder]\nallow = \"Edit\"\n",
    "[roles.coder]\neffects = { deny = [3] }\n",
    "[roles.coder]\nplans = \"*\"\n",
    "[roles.coder.pace]\nalternat = \"human\"\n",
    "[roles.coder.pace]\nalternate = \"a b\"\n",
    "[prices.m]\ninput = 1\n",
    "[prices.m]\ninput = -1\noutput = 1\n",
    "[prices.m]\ninput = \"1\"\noutput = 1\n",
    "[roles.coder]\nagent = \"exec: \"\n",
    "[roles.coder]\nenv = [\"PLANCTL_X\"]\n",
    "[roles.\"a b\"]\ntimeout = \"1m\"\n",
    "roles = 3\n",
    "[workspace]\nmode = \"wortree\"\n",
    "[workspace]\ngit = \"branch\"\n",
    "[project]\nplans = \"plans\"\n",
    "[database]\nurl = \"mysql://h/x\"\n",
    "[postgres]\ndownload = \"no\"\n",
    "[postgres]\nbin_dir = \"bin\"\n",
    "[verify]\nallow = [\"P010\"]\n",
    "[verify]\ndeny = [\"P999\"]\n",
    "[verify]\ndeny = \"P104\"\n",
    "[verify]\nwarnings = []\n",
];

#[test]
fn the_schema_of_planctl_toml_takes_and_refuses_what_planctl_does() {
    let validator = jsonschema::draft202012::new(&schema("planctl.toml")).unwrap();
    let fixture = Fixture::new();
    fixture.write("p.md", &crate::fixture::plan("A", "5 minutes", &[("One", "test -s one.txt", "abort")]));
    for (text, is_good) in
        ACCEPTED.iter().map(|text| (text, true)).chain(REFUSED.iter().map(|text| (text, false)))
    {
        let value: Value = toml::from_str::<Value>(text).unwrap();
        assert_eq!(validator.is_valid(&value), is_good, "the schema of\n{text}");
        fixture.write("planctl.toml", text);
        let code = fixture.planctl(&["plan", "verify", "p.md", "-A", "P401", "-A", "P402"]).code;
        assert_eq!(code != 78, is_good, "planctl of\n{text}");
    }
}

#[test]
fn the_configuration_that_the_documentation_shows_fits_the_schema() {
    let validator = jsonschema::draft202012::new(&schema("planctl.toml")).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    // Editors have toml of their own.
    let docs = docs.filter(|page| !page.ends_with("editors.md"));
    let mut shown = 0;
    for page in
        docs.chain([root.join("README.md")]).filter(|page| page.extension().is_some_and(|end| end == "md"))
    {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let value: Value = toml::from_str(block).unwrap();
            assert!(validator.is_valid(&value), "{}:\n{block}", page.display());
            shown += 1;
        }
    }
    assert!(shown > 0);
}

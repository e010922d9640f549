//! Configuration as people write it, and what is said of it when it is wrong.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_engine::{Responder, Role, Tier};
use planctl_lang::Wish;
use serde_json::json;

use super::*;

fn no_env(_: &str) -> Option<OsString> {
    None
}

fn sources<'a>(workspace: &'a Path, state_dir: &'a Path) -> Sources<'a> {
    Sources {
        workspace,
        state_dir,
        file: None,
        database_url: None,
        workspace_mode: None,
        leaves_unread: false,
        env: &no_env,
    }
}

fn findings(text: &str) -> Vec<String> {
    match read::layer(Path::new("planctl.toml"), text) {
        Err(ConfigError::Invalid { findings, .. }) => findings.iter().map(Finding::to_string).collect(),
        other => panic!("expected findings, got {other:?}"),
    }
}

struct Project {
    root: tempfile::TempDir,
}

impl Project {
    fn with(text: &str) -> Project {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("shop/src")).unwrap();
        std::fs::write(root.path().join("shop").join(FILE_NAME), text).unwrap();
        Project { root }
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("shop")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn load(&self) -> Loaded {
        load(&sources(&self.dir().join("src"), &self.state())).unwrap()
    }
}

#[test]
fn a_whole_file_reads() {
    let text = "isolation = \"require:0\"\n[project]\nname = \"shop\"\n[contracts]\ntimeout = \"1h30m\"\n\
                env = { CI = \"1\" }\npath = [\"/opt/tools/bin\"]\n[roles.coder]\nagent = \"exec:./code.sh\"\n\
                timeout = \"10m\"\nidle_timeout = \"90s\"\nenv = [\"API_KEY\"]\n[database]\n\
                url = \"postgres://me:secret@db/plans\"\n[postgres]\nbin_dir = \"/opt/pg/bin\"\ndownload = false\nstop_after = \"0s\"\n";
    let config = read::layer(Path::new("planctl.toml"), text).unwrap().effective();
    assert_eq!(config.contracts.timeout, Some(Duration::from_secs(5400)));
    assert_eq!(config.contracts.path, [PathBuf::from("/opt/tools/bin")]);
    let coder = &config.roles[&Role::new("coder")];
    assert_eq!(coder.agent, Some(Agent::Exec("./code.sh".into())));
    assert_eq!(coder.env.inherit, ["API_KEY"]);
    assert_eq!(config.isolation, Isolation::Require(Tier::SameUser));
    assert_eq!(config.database.unwrap().to_string(), "postgres://me:…@db/plans");
    assert!(!config.postgres.download);
    assert_eq!(config.postgres.stop_after, Duration::ZERO);
}

#[test]
fn row_108_every_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
    let text = "isolatoin = \"auto\"\n[contracts]\ntimout = \"1m\"\n[roles.coder]\n  agnet = \"exec:x\"\n";
    assert_eq!(
        findings(text),
        [
            "1:1: unknown key `isolatoin`; did you mean `isolation`?",
            "3:1: unknown key `timout`; did you mean `timeout`?",
            "5:3: unknown key `agnet`; did you mean `agent`?",
        ]
    );
}

#[test]
fn row_108_a_wrong_type_is_named_with_its_place() {
    assert_eq!(
        findings("[contracts]\ntimeout = 10\n[postgres]\ndownload = \"no\"\nbin_dir = \"bin\"\n"),
        [
            "2:11: expected a text in quotes, found a value of type integer",
            "4:12: expected true or false, found a value of type string",
            "5:11: expected an absolute directory, found \"bin\"",
        ]
    );
    assert_eq!(findings("roles = 3\n"), ["1:9: expected a table: [roles], found a value of type integer"]);
}

#[test]
fn broken_toml_is_named_with_its_place() {
    let found = findings("[contracts]\ntimeout = \n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("2:"), "{found:?}");
    assert!(findings("[project]\nname = \"a\"\nname = \"b\"\n")[0].starts_with("3:1: duplicate key"));
}

#[test]
fn p_19_a_rule_counts_the_people_of_a_group_and_nobody_of_one_that_no_file_has() {
    let text = "[groups]\nleads = [\"ann\", \"ben\"]\n[asks.x]\napprovals = 3\nof = [\"carl\", \"group:leads\", \"group:none\"]\n";
    let project = Project::with(text);
    trust(&project.state(), &project.dir()).unwrap();
    let config = project.load().config;
    let of = config.asks["x"].of.clone().unwrap();
    assert_eq!(of.iter().map(String::as_str).collect::<Vec<_>>(), ["ann", "ben", "carl", "group:none"]);
    assert!(findings("[groups]\nleads = \"ann\"\n")[0].starts_with("2:9: "));
}

#[test]
fn budgets_of_a_day_limit_tokens_and_money_and_count_where_the_file_is_trusted() {
    let text =
        "[budget]\nper_day = \"2M tokens, $20\"\nhost_per_day = \"$100\"\ntime_zone = \"Europe/Berlin\"\n";
    let project = Project::with(text);
    assert!(project.load().config.day.is_none(), "nobody trusts the file");
    trust(&project.state(), &project.dir()).unwrap();
    let day = project.load().config.day;
    let budget = day.project.unwrap();
    assert_eq!((budget.tokens, budget.micro_usd, budget.time), (Some(2_000_000), Some(20_000_000), None));
    assert_eq!(
        (day.host.unwrap().micro_usd, day.zone.as_deref()),
        (Some(100_000_000), Some("Europe/Berlin"))
    );
    for (text, found) in [
        ("per_day = \"20 minutes\"\n", "2:11: \"20 minutes\" is not a budget of a day"),
        ("per_day = 20\n", "2:11: "),
        ("time_zone = \"Mars; drop\"\n", "2:13: expected the name of a time zone"),
        ("per_week = \"$1\"\n", "2:1: "),
    ] {
        let findings = findings(&format!("[budget]\n{text}"));
        assert!(findings[0].starts_with(found), "{findings:?}");
    }
}

#[test]
fn keys_and_agents_of_later_are_refused_and_never_ignored() {
    let text = "[daemon]\nworkers = 8\n[contracts]\nsecrets = \"warn\"\n[roles.coder]\nparse = \"text\"\n";
    let found = findings(text);
    assert_eq!(found.len(), 3);
    assert!(found[0].starts_with("1:2: `daemon` is not supported yet"), "{found:?}");
    assert!(found[1].starts_with("4:1: `contracts.secrets` is not supported yet"), "{found:?}");
    assert!(found[2].starts_with("6:1: `roles.coder.parse` is not supported yet"), "{found:?}");
}

#[test]
fn what_is_asked_of_contracts_before_the_work_is_part_of_what_is_approved() {
    let none = Project::with("[contracts]\ntimeout = \"1m\"\n").load().config;
    let off = Project::with("[contracts]\ntimeout = \"1m\"\nred_first = \"off\"\n").load().config;
    let deny = Project::with("[contracts]\ntimeout = \"1m\"\nred_first = \"deny\"\n").load().config;
    assert_eq!(none.contracts.red_first, planctl_engine::RedFirst::Off);
    assert_eq!(none.digest(), off.digest(), "approvals given before there was such a key still hold");
    assert_eq!(deny.contracts.red_first, planctl_engine::RedFirst::Deny);
    assert_ne!(none.digest(), deny.digest());
    let found = findings("[contracts]\nred_first = \"wran\"\n");
    assert_eq!(found, ["2:13: red_first can't be \"wran\"; did you mean \"warn\"?"]);
    assert!(findings("[contracts]\nred_first = true\n")[0].starts_with("2:13: expected a text"));
}

#[test]
fn p_78_a_policy_says_of_which_plans_and_up_to_what_budget() {
    assert_eq!(
        findings("[approval.chores]\nplans = [\"chores/*.md\"]\n"),
        [
            "1:11: the policy \"chores\" needs `plans` and `budget`; a policy approves in your place: say of which plans, \
             and up to what budget"
        ]
    );
    let found = findings("[approval]\nplans = [\"*\"]\nbudget = \"$1\"\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("2:1: an approval policy is a table with a name; write [approval.plans]"),
        "{found:?}"
    );
    let text = "[approval.chores]\nplans = [\"a[\"]\nbudget = \"a lot\"\nsteps = 0\nrole = [\"coder\"]\n\
                roles = [\"-\"]\n[approval.\"x y\"]\n";
    let found = findings(text);
    for (at, words) in [
        "2:10: ",
        "3:10: \"a lot\" is not a budget",
        "4:9: ",
        "5:1: unknown key `role`",
        "6:9: ",
        "7:11: \"x y\" can't name a policy",
    ]
    .iter()
    .enumerate()
    {
        assert!(found[at].starts_with(words), "{found:?}");
    }
}

#[test]
fn p_78_a_policy_counts_only_where_its_file_is_trusted_and_is_taken_whole() {
    let policy =
        |bounds: &str| format!("[approval.chores]\nplans = [\"chores/*.md\"]\nbudget = \"$1\"\n{bounds}");
    let project = Project::with(&policy("roles = [\"coder\"]\n"));
    let loaded = project.load();
    assert!(
        loaded.config.approval.is_empty() && loaded.warnings[0].contains("ignored: approval.chores;"),
        "{loaded:?}"
    );
    trust(&project.state(), &project.dir()).unwrap();
    assert_eq!(
        project.load().config.approval["chores"].describe(),
        "plans chores/*.md; at most $1.00; roles coder"
    );

    let user = read::layer(Path::new("user.toml"), &policy("steps = 2\n")).unwrap();
    let own = read::layer(Path::new("planctl.toml"), &policy("roles = [\"coder\"]\n")).unwrap();
    let both = user.layered_over(own);
    assert_eq!(both.origins.get(&Key::of(&["approval", "chores", "roles"])), None);
    assert_eq!(both.effective().approval["chores"].describe(), "plans chores/*.md; at most $1.00; 2 steps");
}

#[test]
fn p_19_a_rule_for_asks_says_what_it_demands_and_counts_only_where_its_file_is_trusted() {
    let text = "[asks.release]\nkinds = [\"plan\"]\napprovals = 2\nof = [\"ann\", \"ben\", \"carl\"]\nself_approval = false\n\
                deadline = \"24h\"\non_deadline = \"reject\"\n";
    let project = Project::with(text);
    let loaded = project.load();
    assert!(loaded.config.asks.is_empty(), "{loaded:?}");
    assert!(loaded.warnings[0].contains("ignored: asks.release;"), "{loaded:?}");
    trust(&project.state(), &project.dir()).unwrap();
    let rule = project.load().config.asks["release"].clone();
    assert_eq!(rule.describe(), "2 of ann, ben, carl, and nobody for a plan of their own");
    assert_eq!(rule.deadline, Some(Duration::from_secs(24 * 3600)));
    assert_eq!(project.load().warnings, Vec::<String>::new());
    let endless = Project::with("[asks.release]\ndeadline = \"24h\"\n");
    trust(&endless.state(), &endless.dir()).unwrap();
    let warned = endless.load().warnings;
    assert!(warned.len() == 1 && warned[0].starts_with("asks.release.deadline has no effect"), "{warned:?}");
    assert!(rule.is_for(planctl_engine::AskKind::Plan) && !rule.is_for(planctl_engine::AskKind::Effect));

    for (text, words) in [
        ("[asks.a]\n", "1:7: the rule demands nothing; say how many have to agree"),
        ("[asks.a]\non_deadline = \"abort\"\n", "1:7: `on_deadline` needs a `deadline`"),
        ("[asks.a]\napprovals = 2\nof = [\"ann\"]\n", "1:7: the rule wants 2 votes of 1 people"),
        (
            "[asks.a]\napprovals = 2\nkinds = [\"plans\"]\n",
            "3:10: kinds can't be \"plans\"; did you mean \"plan\"?",
        ),
        (
            "[asks.a]\ndeadline = \"1h\"\non_deadline = \"approve\"\n",
            "3:15: on_deadline can't be \"approve\"",
        ),
        ("[asks]\napprovals = 2\n", "2:1: a rule for asks is a table with a name; write [asks.approvals]"),
        ("[asks.a]\napproval = 2\n", "2:1: unknown key `approval`"),
    ] {
        let found = findings(text);
        assert!(found[0].starts_with(words), "{text}: {found:?}");
    }
}

#[test]
fn variables_of_planctl_itself_and_broken_names_are_refused() {
    let found = findings("[contracts]\nenv = { PLANCTL_ITEM_ID = \"x\", \"a b\" = \"1\" }\n");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn an_untrusted_project_starts_nothing_and_says_which_keys_are_ignored() {
    let project = Project::with(
        "isolation = \"require:1\"\n[contracts]\ntimeout = \"1m\"\nenv = { A = \"1\" }\n[roles.coder]\nagent = \"exec:./x\"\n",
    );
    let loaded = project.load();
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].contains("contracts.env, roles.coder.agent"), "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("planctl trust"));
    assert_eq!(loaded.config.roles[&Role::new("coder")].agent, None);
    assert!(loaded.config.contracts.env.is_empty());
    assert_eq!(loaded.config.contracts.timeout, Some(Duration::from_secs(60)));
    assert_eq!(
        loaded.config.isolation,
        Isolation::Require(Tier::Landlock),
        "stricter isolation needs no trust"
    );
}

#[test]
fn trust_holds_until_the_file_changes() {
    let project = Project::with("[roles.coder]\nagent = \"exec:./x\"\n");
    trust(&project.state(), &project.dir()).unwrap();
    let loaded = project.load();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(loaded.config.roles[&Role::new("coder")].agent, Some(Agent::Exec("./x".into())));
    let file = project.state().join(TRUST_FILE);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    std::fs::write(project.dir().join(FILE_NAME), "[roles.coder]\nagent = \"exec:./evil\"\n").unwrap();
    let changed = project.load();
    assert!(changed.warnings[0].contains("has changed since it was trusted"));
    assert_eq!(changed.config.roles[&Role::new("coder")].agent, None);
}

#[test]
fn trusting_a_directory_without_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(trust(dir.path(), dir.path()), Err(ConfigError::Missing { .. })));
}

#[test]
fn the_user_goes_before_the_project_and_a_flag_before_both() {
    let project =
        Project::with("[contracts]\ntimeout = \"1m\"\n[database]\nurl = \"postgres://project/a\"\n");
    trust(&project.state(), &project.dir()).unwrap();
    let home = project.root.path().join("home");
    std::fs::create_dir_all(home.join(".config/planctl")).unwrap();
    std::fs::write(
        home.join(".config/planctl").join(FILE_NAME),
        "isolation = \"require:1\"\n[contracts]\ntimeout = \"2m\"\n[database]\nurl = \"postgres://user/b\"\n",
    )
    .unwrap();
    let with_home = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
    let (dir, state) = (project.dir(), project.state());
    let mut sources = Sources { env: &with_home, ..sources(&dir, &state) };
    let loaded = load(&sources).unwrap();
    assert_eq!(loaded.config.contracts.timeout, Some(Duration::from_secs(120)));
    assert_eq!(loaded.config.database.as_ref().unwrap().expose(), "postgres://user/b");
    assert_eq!(loaded.files.len(), 2);

    sources.database_url = Some("postgres://flag/c");
    assert_eq!(load(&sources).unwrap().config.database.unwrap().expose(), "postgres://flag/c");
}

#[test]
fn the_application_s_own_database_is_never_used() {
    let dir = tempfile::tempdir().unwrap();
    let env = |name: &str| (name == "DATABASE_URL").then(|| OsString::from("postgres://app/live"));
    let loaded = load(&Sources { env: &env, ..sources(dir.path(), dir.path()) }).unwrap();
    assert_eq!(loaded.config.database, None);
}

#[test]
fn row_101_a_password_never_shows() {
    for url in ["postgres://me:hunter2@h/db", "postgresql://h/db?user=me&password=hunter2"] {
        let url = DatabaseUrl::parse(url).unwrap();
        assert!(!format!("{url} {url:?}").contains("hunter2"));
    }
    let url = DatabaseUrl::parse("postgres://me:hunter%402@h:5/db?x=1").unwrap();
    assert_eq!(url.without_password(), ("postgres://me@h:5/db?x=1".to_owned(), Some("hunter@2".to_owned())));
    let error = DatabaseUrl::parse("mysql://me:hunter2@h").unwrap_err();
    assert!(!error.contains("hunter2"));
}

#[test]
fn the_digest_covers_what_runs_and_not_where_it_is_stored() {
    let base = Config::default();
    let stored =
        Config { database: Some(DatabaseUrl::parse("postgres://h/x").unwrap()), ..Config::default() };
    assert_eq!(base.digest(), stored.digest());
    let served = Config {
        roles: BTreeMap::from([(
            Role::new("coder"),
            RoleConfig { agent: Some(Agent::Exec("x".into())), ..RoleConfig::default() },
        )]),
        ..Config::default()
    };
    assert_ne!(base.digest(), served.digest());
}

#[test]
fn a_pipe_in_place_of_the_file_is_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = dir.path().join(FILE_NAME);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = load(&sources(dir.path(), dir.path())).unwrap_err();
    assert!(matches!(error, ConfigError::NotAFile { .. }), "{error:?}");
}

#[test]
fn times_read_as_people_write_them() {
    assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
    assert_eq!(parse_duration("2 days"), Ok(Duration::from_secs(172_800)));
    for wrong in ["", "10", "m", "1.5h", "0s", "99999999999999999999s"] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn levels_of_codes_are_read_and_every_mistake_is_named_with_its_place() {
    let text = "[verify]\nallow = [\"P104\"]\nwarn = [\"P102\"]\ndeny = [\"warnings\"]\n";
    let config = read::layer(Path::new("planctl.toml"), text).unwrap().effective();
    // A table has no order: a code goes before `warnings` wherever it stands.
    assert_eq!(
        config.verify.wishes(),
        [("warnings", Wish::Deny), ("P102", Wish::Warn), ("P104", Wish::Allow)]
    );
    assert_eq!(
        findings(
            "[verify]\nallow = [\"P14\", \"P010\", 3]\ndeny = \"P104\"\nwarnings = []\nwarn = [\"P110\", \"P102\"]\n[contracts]\n"
        ),
        [
            "2:10: `P14` is neither a code nor `warnings`; did you mean `P014`?",
            "2:17: `P010` is always an error: a step has no contract",
            "2:25: expected a text in quotes, found a value of type integer",
            "3:8: expected a list of codes: [\"P104\"], found a value of type string",
            "4:1: unknown key `warnings`; known here: allow, warn, deny",
        ]
    );
    assert_eq!(
        findings("[verify]\nallow = [\"P104\"]\ndeny = [\"p104\"]\n"),
        ["3:9: `p104` stands in two lists, and can only have one level; leave it in one"]
    );
}

#[test]
fn an_untrusted_project_hides_no_finding_and_may_be_stricter() {
    let project = Project::with("[verify]\nallow = [\"P602\"]\ndeny = [\"P104\"]\n");
    let loaded = project.load();
    assert_eq!(loaded.config.verify.wishes(), [("P104", Wish::Deny)]);
    assert!(loaded.warnings[0].contains("ignored: verify: P602;"), "{:?}", loaded.warnings);
    trust(&project.state(), &project.dir()).unwrap();
    assert_eq!(project.load().config.verify.wishes(), [("P104", Wish::Deny), ("P602", Wish::Allow)]);
}

#[test]
fn levels_are_part_of_what_is_approved_and_without_any_nothing_changes() {
    let read = |text: &str| read::layer(Path::new("planctl.toml"), text).unwrap().effective();
    assert!(Config::default().approved().get("verify").is_none());
    assert_ne!(read("[verify]\nallow = [\"P102\"]\n").digest(), Config::default().digest());
    assert_eq!(
        read("[verify]\nallow = [\"P104\", \"P102\"]\n").digest(),
        read("[verify]\nallow = [\"P102\", \"P104\"]\n").digest()
    );
}

#[test]
fn a_configuration_survives_the_way_to_a_daemon_and_its_database_stays_behind() {
    let text = "isolation = \"require:1\"\n[project]\nname = \"x\"\n[contracts]\ntimeout = \"1m\"\nenv = { A = \"1\" }\npath = [\"/opt\"]\nred_first = \"warn\"\n\
        [contracts.limits]\ncpu = \"5m\"\nmemory = \"512MiB\"\nopen_files = 64\n\
        [roles.coder]\nagent = \"exec:./x\"\ntimeout = \"2m\"\nidle_timeout = \"3m\"\nenv = [\"KEY\"]\n\
        [database]\nurl = \"postgres://me:hunter2@h/x\"\n[postgres]\ndownload = false\n[verify]\nallow = [\"P104\"]\ndeny = [\"warnings\"]\n";
    let config = read::layer(Path::new("planctl.toml"), text).unwrap().effective();
    let sent = serde_json::to_string(&config).unwrap();
    assert!(!sent.contains("hunter2"), "{sent}");
    let arrived: Config = serde_json::from_str(&sent).unwrap();
    assert_eq!(arrived, Config { database: None, ..config.clone() });
    assert_eq!(arrived.digest(), config.digest());
    assert_eq!(serde_json::from_str::<Config>("{}").unwrap(), Config::default());
    // A key of a later planctl may be a restriction: it is refused, never dropped.
    assert!(serde_json::from_str::<Config>("{\"contracts\":{\"network\":\"none\"}}").is_err());
}

const ROLES: &str = "[roles.coder]\nagent = \"claude:--model 'opus 4'\"\npermissions = \"ask\"\nallow = [\"Edit\", \"Bash(git *)\"]\n\
    effects = { allow = [\"network\"], deny = [\"delete\"] }\nplans = [\"plans/*.md\"]\n\
    [roles.coder.pace]\nalternate = \"coder-strong\"\nemergency = \"human\"\n[roles.coder-strong]\nagent = \"codex\"\n\
    [prices.\"gpt-x\"]\ninput = 1.25\ncached = 0.125\noutput = 10\n";

#[test]
fn roles_name_agents_what_they_may_do_their_plans_and_who_answers_for_them() {
    let config = read::layer(Path::new("planctl.toml"), ROLES).unwrap().effective();
    let coder = &config.roles[&Role::new("coder")];
    assert_eq!(coder.agent.as_ref().unwrap().to_string(), "claude:--model 'opus 4'");
    assert_eq!(coder.permission_words().unwrap(), "may Edit, Bash(git *), else asks you");
    let strong = config.roles[&Role::new("coder-strong")].permission_words().unwrap();
    assert!(strong.starts_with("may edit, any command in its own sandbox"), "{strong}");
    assert!(coder.effects.allow.contains("network") && coder.effects.deny.contains("delete"));
    let levels: Vec<_> = coder.pace.levels().map(|(level, who)| (level.as_str(), who.to_string())).collect();
    assert_eq!(levels, [("alternate", "coder-strong".to_owned()), ("emergency", "human".to_owned())]);
    assert_eq!(coder.pace.emergency, Some(Responder::Human));
    let price = config.prices["gpt-x"];
    assert_eq!((price.input, price.cached, price.output), (1_250_000, 125_000, 10_000_000));
    let sent = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&sent).unwrap(), config);
}

#[test]
fn row_108_what_is_wrong_with_a_role_or_a_price_is_named_with_its_place() {
    for (text, expected) in [
        ("agent = \"claud\"", "2:9: no agent is called \"claud\"; did you mean claude?"),
        ("agent = \"exec: \"", "2:9: the agent has no command; write exec:COMMAND"),
        (
            "agent = \"codex:'x\"",
            "2:9: a quote in \"'x\" is not closed; its words are split as a shell would",
        ),
        ("permissions = \"aks\"", "2:15: permissions can't be \"aks\"; did you mean \"ask\"?"),
        ("permissions = true", "2:15: expected a text in quotes, found a value of type boolean"),
        (
            "network = \"hots\"",
            "2:11: `network` is \"host\", \"none\" or a list of hosts: [\"api.example.com\"]; not \"hots\"",
        ),
        (
            "network = true",
            "2:11: expected \"host\", \"none\" or a list of hosts: [\"api.example.com\"], found a value of type boolean",
        ),
        ("network = []", "2:11: `network` has no hosts; write \"none\" for a worker that reaches nothing"),
        (
            "network = [\"a.example\", \"https://b.example\"]",
            "2:25: \"https://b.example\" can't be a host of `network`: it has a scheme, a path or a login; write a name, \
             \"*.\" and a name for all beneath it, or an IP address; \":PORT\" where it is not 443 or 80",
        ),
        ("network = [443]", "2:12: expected a text in quotes, found a value of type integer"),
        ("alow = []", "2:1: unknown key `alow`; did you mean `allow`?"),
        (
            "agent = \"codex\"\nallow = [\"Bash\"]",
            "3:9: codex can't be held to a list of tools: remove `allow`, or write allow = [\"*\"], which leaves its sandbox",
        ),
        (
            "agent = \"exec:x\"\npermissions = \"deny\"",
            "3:15: permissions hold agents that are known by name; planctl can't hold a command of your own",
        ),
        (
            "agent = \"gemini\"\npermissions = \"ask\"",
            "3:15: gemini does not tell what it was denied, so nobody can be asked; write \"deny\" or \"list\"",
        ),
        (
            "effects = { allow = [\"netwrok\"] }",
            "2:22: \"netwrok\" can't be an effect; did you mean \"network\"?",
        ),
        (
            "effects = { allow = [\"read\"], deny = [\"read\"] }",
            "2:11: `read` is both allowed and denied; what is denied would win; leave it in one list",
        ),
        ("effects = { alow = [] }", "2:13: unknown key `alow`; did you mean `allow`?"),
        (
            "plans = \"x\"",
            "2:9: expected a list of plans: [\"plans/bugfix-*.md\"], found a value of type string",
        ),
        ("pace = { alternat = \"x\" }", "2:10: unknown key `alternat`; did you mean `alternate`?"),
        ("pace = { alternate = \"a b\" }", "2:22: \"a b\" is neither a role nor \"human\""),
        (
            "pace = { alternate = \"x\" }",
            "2:22: `x` can't answer for itself; it is the primary already; name another role, or \"human\"",
        ),
    ] {
        assert_eq!(findings(&format!("[roles.x]\n{text}\n")), [expected], "{text}");
    }
    assert!(findings("[roles.x]\nplans = [\"[\"]\n")[0].starts_with("2:10: `[` is not a glob"));
    for (text, expected) in [
        ("input = 1", "1:9: the price of \"m\" needs `input` and `output`; in US dollars per million tokens"),
        ("input = -1\noutput = 1", "2:9: a price is 0 to 100000 US dollars per million tokens"),
        ("input = inf\noutput = 1", "2:9: a price is 0 to 100000 US dollars per million tokens"),
        (
            "input = \"1\"\noutput = 1",
            "2:9: expected US dollars per million tokens, such as 1.25, found a value of type string",
        ),
        ("inptu = 1\ninput = 1\noutput = 1", "2:1: unknown key `inptu`; did you mean `input`?"),
    ] {
        assert_eq!(findings(&format!("[prices.m]\n{text}\n")), [expected], "{text}");
    }
}

#[test]
fn what_a_role_may_reach_is_read_kept_and_shown_with_what_it_may_do() {
    let text = "[roles.coder]\nagent = \"claude\"\npermissions = \"deny\"\nnetwork = [\"API.example.com\", \"[::1]:8080\"]\n\
                [roles.offline]\nnetwork = \"none\"\n[roles.usual]\nnetwork = \"host\"\n[roles.silent]\n";
    let config = read::layer(Path::new("planctl.toml"), text).unwrap().effective();
    let words = |role: &str| config.roles[&Role::new(role)].permission_words();
    assert_eq!(words("coder").unwrap(), "only reads; network: api.example.com, [::1]:8080");
    assert_eq!(words("offline").unwrap(), "no network");
    assert_eq!((words("usual"), words("silent")), (None, None));
    let sent = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&sent).unwrap(), config);
    let approved = |role: &str| config.roles[&Role::new(role)].approved();
    assert_eq!(approved("coder")["network"], json!(["api.example.com", "[::1]:8080"]));
    assert_eq!(approved("usual"), approved("silent"), "it is the usual");
    let project = Project::with(text);
    let shown = |key: &str| origin_of(&project.load(), key);
    assert_eq!(shown("roles.coder.network"), "project:4", "it only takes away, and needs no trust");
    assert_eq!(
        (shown("roles.usual.network").as_str(), shown("roles.silent.network").as_str()),
        ("project:8", "not there")
    );
}

#[test]
fn what_roles_may_do_is_approved_and_equal_old_configurations_keep_their_digest() {
    let digest = |text: &str| read::layer(Path::new("planctl.toml"), text).unwrap().effective().digest();
    let old = "[roles.coder]\nagent = \"exec:./x\"\ntimeout = \"10m\"\n";
    // Worked out by a planctl that knew commands only.
    assert_eq!(
        read::layer(Path::new("planctl.toml"), old).unwrap().effective().approved(),
        json!({
            "contracts": { "env": {}, "path": [], "timeout_ms": null },
            "isolation": "auto",
            "roles": { "coder": {
                "agent": "exec:./x", "env": { "inherit": [], "set": {} }, "idle_timeout_ms": null, "timeout_ms": 600_000,
            } },
        })
    );
    let base = "[roles.coder]\nagent = \"claude\"\n";
    for more in [
        "permissions = \"deny\"",
        "allow = [\"Edit\"]",
        "effects = { deny = [\"network\"] }",
        "plans = []",
        "pace = { alternate = \"human\" }",
        "[prices.m]\ninput = 1\noutput = 1",
    ] {
        assert_ne!(digest(base), digest(&format!("{base}{more}\n")), "{more}");
    }
    assert_eq!(digest(base), digest(&format!("{base}permissions = \"list\"\n")), "it is the usual");
}

const MODELS: &str = "[models.writer]\napi = \"messages\"\nurl = \"https://models.example\"\nmodel = \"m-1\"\n\
                      key_env = \"MODEL_KEY\"\nmax_tokens = 500\ntimeout = \"30s\"\n";

#[test]
fn a_model_is_read_and_names_a_variable_and_never_a_key() {
    let config = read::layer(Path::new("planctl.toml"), MODELS).unwrap().effective();
    let model = &config.models["writer"];
    assert_eq!(
        (model.api, model.max_tokens, model.timeout),
        (ModelApi::Messages, 500, Duration::from_secs(30))
    );
    assert_eq!(model.key_env.as_deref(), Some("MODEL_KEY"));
    let table = "[models.m]\napi = \"chat\"\nmodel = \"x\"\n";
    for (text, says) in [
        (table.to_owned(), "the model \"m\" needs `api`, `url` and `model`"),
        (
            format!("{table}url = \"https://secret@a\"\n"),
            "the address of a model has no login and no parameters",
        ),
        (
            format!("{table}url = \"https://a\"\nkey_env = \"sk-secret\"\n"),
            "key_env is the name of a variable in capitals",
        ),
        (format!("{table}url = \"https://a\"\nmax_tokens = 0\n"), "a whole number from 1"),
        (format!("{table}url = \"https://a\"\nask = \"yes\"\n"), "true or false"),
        (
            format!("{}url = \"https://a\"\nask = true\n", table.replace("chat", "embeddings")),
            "embeddings are not prompts",
        ),
        (format!("{table}url = \"https://a\"\nkey = \"x\"\n"), "unknown key `key`"),
        (table.replace("chat", "chats") + "url = \"https://a\"\n", "api can't be \"chats\""),
    ] {
        let found = format!("{:?}", read::layer(Path::new("planctl.toml"), &text).unwrap_err());
        assert!(found.contains(&says.replace('"', "\\\"")), "{text}: {found}");
        assert!(!found.contains("secret"), "{found}");
    }
}

const CHANNELS: &str = "[notify.team]\nto = \"webhook\"\nurl_env = \"HOOK_URL\"\nsecret_env = \"HOOK_SECRET\"\n\
                        on = [\"run.failed\"]\n[notify.own]\nto = \"exec\"\ncommand = \"true\"\n";

#[test]
fn a_channel_is_read_and_names_variables_and_never_a_secret() {
    let config = read::layer(Path::new("planctl.toml"), CHANNELS).unwrap().effective();
    let channel = &config.channels["team"];
    assert_eq!(channel.on, [MessageEvent::RunFailed].into());
    assert_eq!(channel.timeout, Duration::from_secs(10));
    assert_eq!(config.channels["own"].on.len(), MessageEvent::ALL.len(), "everything where nothing is said");
    for (text, says) in [
        ("[notify.a]\nto = \"webhook\"\n", "needs `url` or `url_env`, one of them"),
        (
            "[notify.a]\nto = \"webhook\"\nurl = \"https://a\"\nurl_env = \"B\"\n",
            "needs `url` or `url_env`, one of them",
        ),
        ("[notify.a]\nurl = \"https://a\"\n", "needs `to`: one of webhook, slack, smtp, desktop, exec"),
        ("[notify.a]\nto = \"exec\"\n", "needs `command`"),
        ("[notify.a]\nto = \"smtp\"\nserver = \"m\"\nfrom = \"a@b\"\n", "needs `recipients`"),
        ("[notify.a]\nto = \"smtp\"\nserver = \"m\"\nport = 70000\n", "a port from 1 to 65535"),
        ("[notify.a]\nto = \"desktop\"\nurl = \"https://a\"\n", "unknown key `url`"),
        ("[notify.a]\nto = \"exec\"\ncommand = \"x\"\nurl = \"https://a\"\n", "unknown key `url`"),
        ("[notify.a]\nto = \"slack\"\nurl = \"https://a\"\nsecret_env = \"B\"\n", "takes no signature"),
        ("[notify.a]\nto = \"webhook\"\nurl = \"https://secret@a\"\n", "an address has no login"),
        (
            "[notify.a]\nto = \"webhook\"\nurl_env = \"https://secret\"\n",
            "url_env is the name of a variable in capitals",
        ),
        ("[notify.a]\nto = \"exec\"\ncommand = \"x\"\non = [\"run.doen\"]\n", "did you mean \"run.done\"?"),
    ] {
        let found = format!("{:?}", read::layer(Path::new("planctl.toml"), text).unwrap_err());
        assert!(found.contains(&says.replace('"', "\\\"")), "{text}: {found}");
        assert!(!found.contains("//secret"), "{found}");
    }
    let loaded = Project::with(CHANNELS).load();
    assert!(loaded.config.channels.is_empty());
    let keys: Vec<String> = loaded.distrusted.unwrap().keys.into_iter().map(|key| key.key).collect();
    assert_eq!(keys, ["notify.own", "notify.team"]);
}

#[test]
fn an_untrusted_project_sends_no_variable_to_an_address_of_its_own() {
    let loaded = Project::with(MODELS).load();
    assert!(loaded.config.models.is_empty(), "{:?}", loaded.config.models);
    let keys: Vec<String> = loaded.distrusted.unwrap().keys.into_iter().map(|key| key.key).collect();
    assert_eq!(keys, ["models.writer"]);
}

#[test]
fn an_untrusted_project_lets_no_agent_do_more_and_hides_no_cost() {
    let project = Project::with(ROLES);
    let loaded = project.load();
    let coder = &loaded.config.roles[&Role::new("coder")];
    assert_eq!(coder.agent, None);
    assert_eq!(coder.permissions, planctl_harness::Permissions::default());
    assert_eq!(coder.pace, Pace::default());
    assert!(
        coder.effects.allow.is_empty() && coder.effects.deny.contains("delete"),
        "stricter needs no trust"
    );
    assert!(coder.plans.is_some() && loaded.config.prices.is_empty());
    for key in
        ["roles.coder.agent", "roles.coder.permissions", "roles.coder.allow", "roles.coder.pace", "prices"]
    {
        assert!(loaded.warnings[0].contains(key), "{key}: {:?}", loaded.warnings);
    }
}

#[test]
fn who_answers_for_a_role_and_is_nowhere_configured_is_told() {
    let project =
        Project::with("[roles.coder.pace]\nalternate = \"strnog\"\n[roles.strong]\nagent = \"exec:x\"\n");
    trust(&project.state(), &project.dir()).unwrap();
    let warnings = project.load().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("roles.coder.pace.alternate")
            && warnings[0].contains("did you mean \"strong\"?")
    );
}

#[test]
fn who_answers_twice_and_who_answers_in_a_circle_is_told() {
    let warnings = |text: &str| {
        let project = Project::with(text);
        trust(&project.state(), &project.dir()).unwrap();
        project.load().warnings
    };
    let twice = warnings(
        "[roles.coder.pace]\nalternate = \"strong\"\nemergency = \"strong\"\n[roles.strong]\nagent = \"exec:x\"\n",
    );
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(
        twice[0].starts_with("roles.coder.pace.emergency is \"strong\", who answers at alternate"),
        "{twice:?}"
    );
    let circle = warnings(
        "[roles.a.pace]\nalternate = \"b\"\n[roles.b.pace]\ncontingent = \"c\"\n[roles.c.pace]\nalternate = \"a\"\n\
         [roles.d.pace]\nalternate = \"a\"\n",
    );
    assert_eq!(circle.len(), 1, "{circle:?}");
    assert!(circle[0].contains("(a → b → c → a)"), "{circle:?}");
    let fine =
        warnings("[roles.a.pace]\nalternate = \"b\"\nemergency = \"human\"\n[roles.b]\nagent = \"exec:x\"\n");
    assert_eq!(fine, Vec::<String>::new());
}

#[test]
fn row_107_a_file_with_a_password_that_everybody_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::with("[database]\nurl = \"postgres://me:hunter2@h/x\"\n");
    let file = project.dir().join(FILE_NAME);
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    trust(&project.state(), &project.dir()).unwrap();
    mode(0o644);
    let (dir, state) = (project.dir(), project.state());
    let error = load(&sources(&dir, &state)).unwrap_err();
    assert!(matches!(error, ConfigError::Exposed { .. }), "{error:?}");
    assert!(!error.to_string().contains("hunter2"));
    mode(0o640);
    assert!(load(&sources(&dir, &state)).is_ok());
}

fn origin_of(loaded: &Loaded, key: &str) -> String {
    let entries = loaded.entries();
    let entry = entries.iter().find(|entry| entry.key.to_string() == key);
    let Some(entry) = entry else { return "not there".to_owned() };
    let said = |origin: &Origin| match origin {
        Origin::Flag(name) | Origin::Variable(name) => (*name).to_owned(),
        Origin::File { path, line } => {
            let is_user = path.components().any(|part| part.as_os_str() == "home");
            format!("{}:{line}", if is_user { "user" } else { "project" })
        }
        Origin::PriceTable => "known".to_owned(),
        Origin::Default => "default".to_owned(),
    };
    entry.origins.iter().map(said).collect::<Vec<_>>().join(" ")
}

const PROJECT: &str = "isolation = \"require:1\"
[contracts]
env = { CI = \"1\", API_TOKEN = \"hunter2\" }
path = [\"/opt/bin\"]
[roles.coder]
agent = \"claude\"
permissions = \"ask\"
allow = [
  \"Edit\",
]
env = [\"KEY\"]
effects = { allow = [\"network\", \"delete\"] }
pace.alternate = \"human\"
[prices.\"gpt.x\"]
input = 1
output = 10.5
[verify]
warn = [\"P104\"]
allow = [\"p602\"]
";
const USER: &str = "isolation = \"require:0\"
[contracts]
timeout = \"90s\"
env.CI = \"2\"
[roles.coder]
permissions = \"list\"
effects.deny = [\"delete\"]
env = { A = \"b\" }
[roles.reviewer]
[verify]
deny = [\"warnings\"]
";

fn with_user(project: &Project, check: impl Fn(Loaded)) {
    let home = project.root.path().join("home");
    std::fs::create_dir_all(home.join(".config/planctl")).unwrap();
    std::fs::write(home.join(".config/planctl").join(FILE_NAME), USER).unwrap();
    let env = |name: &str| match name {
        "HOME" => Some(home.clone().into_os_string()),
        "PLANCTL_DATABASE_URL" => Some(OsString::from("postgres://me:hunter2@h/x")),
        _ => None,
    };
    let (dir, state) = (project.dir(), project.state());
    check(load(&Sources { env: &env, ..sources(&dir, &state) }).unwrap());
}

#[test]
fn every_value_knows_the_line_the_variable_or_the_default_it_comes_from() {
    let project = Project::with(PROJECT);
    trust(&project.state(), &project.dir()).unwrap();
    with_user(&project, |loaded| {
        for (key, origin) in [
            ("isolation", "project:1"),
            ("contracts.timeout", "user:3"),
            ("contracts.env.CI", "user:4"),
            ("contracts.env.API_TOKEN", "project:3"),
            ("contracts.path", "project:4"),
            ("contracts.red_first", "default"),
            ("roles.coder.agent", "project:6"),
            ("roles.coder.permissions", "user:6"),
            ("roles.coder.allow", "not there"),
            ("roles.coder.env", "not there"),
            ("roles.coder.env.A", "user:8"),
            ("roles.coder.effects.allow", "project:12"),
            ("roles.coder.effects.deny", "user:7"),
            ("roles.coder.pace.alternate", "project:13"),
            ("roles.reviewer", "user:9"),
            ("prices.\"gpt.x\".output", "project:16"),
            ("prices.\"gpt.x\".cached", "not there"),
            ("database.url", "PLANCTL_DATABASE_URL"),
            ("postgres.download", "default"),
            ("postgres.stop_after", "default"),
            ("library.learn", "default"),
            ("terminal.call", "default"),
            ("traces.protocol", "default"),
            ("verify.allow", "project:19"),
            ("verify.warn", "not there"),
            ("verify.deny", "project:18 user:11"),
        ] {
            assert_eq!(origin_of(&loaded, key), origin, "{key}");
        }
    });
}

#[test]
fn row_101_what_is_shown_of_the_configuration_holds_no_credential() {
    let project = Project::with(PROJECT);
    trust(&project.state(), &project.dir()).unwrap();
    with_user(&project, |loaded| {
        assert!(!format!("{:?}", loaded.entries()).contains("hunter2"));
        assert_eq!(loaded.config.contracts.env["API_TOKEN"], "hunter2");
    });
}

#[test]
fn keys_that_do_not_count_are_told_with_their_lines_and_lend_nobody_their_origin() {
    let project = Project::with(PROJECT);
    with_user(&project, |loaded| {
        let distrusted = loaded.distrusted.clone().unwrap();
        let keys: Vec<_> = distrusted.keys.iter().map(|key| (key.key.as_str(), key.line)).collect();
        assert_eq!(
            keys,
            [
                ("contracts.env", Some(3)),
                ("contracts.path", Some(4)),
                ("roles.coder.agent", Some(6)),
                ("roles.coder.env", Some(11)),
                ("roles.coder.permissions", Some(7)),
                ("roles.coder.allow", Some(8)),
                ("roles.coder.effects.allow", Some(12)),
                ("roles.coder.pace", Some(13)),
                ("prices", Some(15)),
                ("verify: P104", Some(18)),
                ("verify: P602", Some(19)),
            ]
        );
        assert_eq!(origin_of(&loaded, "contracts.env.API_TOKEN"), "not there");
        assert_eq!(origin_of(&loaded, "verify.deny"), "user:11");
        assert_eq!(origin_of(&loaded, "isolation"), "project:1", "stricter needs no trust");
    });
}

#[test]
fn where_configuration_stands_is_told_whatever_stands_in_it() {
    let project = Project::with("isolation = 3\n");
    let (dir, state) = (project.dir().join("src"), project.state());
    let found = places(&sources(&dir, &state)).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].of, FileOwner::Project(Standing::Unknown));
    assert!(found[0].path.ends_with("shop/planctl.toml") && found[0].is_there);
}

#[test]
fn of_two_demands_on_the_isolation_the_stricter_counts_and_a_single_tier_is_never_less() {
    use Isolation::{Auto, Exactly, Require};
    let (none, landlock, namespaces) = (Tier::SameUser, Tier::Landlock, Tier::Namespaces);
    for (one, other, counts) in [
        (Auto, Exactly(none), Exactly(none)),
        (Exactly(none), Require(landlock), Require(landlock)),
        (Exactly(namespaces), Require(landlock), Exactly(namespaces)),
        (Exactly(none), Exactly(landlock), Exactly(landlock)),
        (Require(landlock), Require(namespaces), Require(namespaces)),
    ] {
        assert_eq!((one.stricter(other), other.stricter(one)), (counts, counts), "{one} {other}");
    }
    for text in ["auto", "0", "1a", "1b", "2", "require:0", "require:1b"] {
        assert_eq!(Isolation::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Require(landlock).tier(namespaces), Some(namespaces));
    assert_eq!(Exactly(landlock).tier(namespaces), Some(landlock));
    assert_eq!(Require(namespaces).tier(landlock), None);
    assert_eq!(Auto.tier(namespaces), Some(none));
    // Tier 2 is taken where it is named, and nowhere else.
    let users = Tier::OwnUser;
    assert_eq!(Require(landlock).tier(users), Some(namespaces));
    assert_eq!((Require(users).tier(users), Exactly(users).tier(users)), (Some(users), Some(users)));
    assert_eq!((Require(users).tier(namespaces), Exactly(users).tier(namespaces)), (None, None));
}

/// Every key of the schema by its dotted name; `*` stands for a name of the user's own.
fn leaves(schema: &serde_json::Value, name: &str, found: &mut Vec<String>) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    let open = schema.get("additionalProperties").filter(|open| open.is_object());
    match (schema.get("properties").and_then(|keys| keys.as_object()), open) {
        (Some(keys), _) => keys.iter().for_each(|(key, of)| leaves(of, &below(key), found)),
        (None, Some(open)) => leaves(open, &below("*"), found),
        (None, None) => found.push(name.to_owned()),
    }
}

#[test]
fn a14_any_change_of_what_runs_changes_what_is_approved() {
    // These settings change nothing about a run: the project's name, the places where planctl keeps its own files, which plan
    // a message finds, which models write drafts, and where messages go.
    let elsewhere = [
        "project.name",
        "database.url",
        "postgres.bin_dir",
        "postgres.download",
        "postgres.stop_after",
        "library.learn",
        "mcp.asks_at_client",
        "terminal.call",
        "traces.endpoint",
        "traces.protocol",
        "traces.service",
        "models.*.api",
        "models.*.url",
        "models.*.model",
        "models.*.key_env",
        "models.*.max_tokens",
        "models.*.timeout",
        "models.*.ask",
        "notify.*.to",
        "notify.*.on",
        "notify.*.timeout",
        "notify.*.page",
        "notify.*.quiet",
        "notify.*.quiet_zone",
        "notify.*.urgent",
        "notify.*.url",
        "notify.*.url_env",
        "notify.*.secret_env",
        "notify.*.allow_private",
        "notify.*.server",
        "notify.*.port",
        "notify.*.tls",
        "notify.*.from",
        "notify.*.recipients",
        "notify.*.user",
        "notify.*.password_env",
        "notify.*.command",
        "notify.*.env",
    ];
    let role = "[roles.coder]\nagent = \"claude\"\n";
    let price = "[prices.x]\ninput = 1\noutput = 2\n";
    let policy = "[approval.x]\nplans = [\"a.md\"]\nbudget = \"$1\"\n";
    let rule = "[asks.x]\nof = [\"ann\", \"ben\"]\ndeadline = \"1h\"\n";
    let server = "[servers.x]\ncommand = [\"a\"]\n";
    let web = "[servers.x]\nurl = \"https://a.example/mcp\"\n";
    let changes = [
        ("servers.*.command", server, "[servers.x]\ncommand = [\"b\"]\n"),
        ("servers.*.env", server, "env = [\"A\"]\n"),
        ("servers.*.effects", server, "effects = [\"read\"]\n"),
        ("servers.*.tools.*", server, "tools.t = [\"read\"]\n"),
        ("servers.*.url", web, "[servers.x]\nurl = \"https://b.example/mcp\"\n"),
        ("servers.*.token_env", web, "token_env = \"B\"\n"),
        (
            "judges.by",
            "",
            "[models.x]\napi = \"chat\"\nurl = \"https://a.example\"\nmodel = \"m\"\n[judges]\nby = [\"x\"]\n",
        ),
        ("judges.alone", "", "[judges]\nalone = true\n"),
        ("isolation", "", "isolation = \"require:0\"\n"),
        ("workspace.mode", "", "[workspace]\nmode = \"worktree\"\n"),
        ("workspace.git", "", "[workspace]\ngit = \"commit\"\n"),
        ("contracts.timeout", "", "[contracts]\ntimeout = \"61s\"\n"),
        ("contracts.env.*", "", "[contracts]\nenv = { A = \"\" }\n"),
        ("contracts.path", "", "[contracts]\npath = [\"/opt\"]\n"),
        ("contracts.red_first", "", "[contracts]\nred_first = \"warn\"\n"),
        ("contracts.limits.cpu", "", "[contracts.limits]\ncpu = \"61s\"\n"),
        ("contracts.limits.memory", "", "[contracts.limits]\nmemory = \"512MiB\"\n"),
        ("contracts.limits.processes", "", "[contracts.limits]\nprocesses = 10\n"),
        ("contracts.limits.file_size", "", "[contracts.limits]\nfile_size = \"1GiB\"\n"),
        ("contracts.limits.open_files", "", "[contracts.limits]\nopen_files = 64\n"),
        ("roles.*.agent", role, "[roles.coder]\nagent = \"claude:-v\"\n"),
        ("roles.*.permissions", role, "permissions = \"deny\"\n"),
        ("roles.*.allow", role, "allow = [\"Edit\"]\n"),
        ("roles.*.effects.allow", role, "effects = { allow = [\"network\"] }\n"),
        ("roles.*.effects.deny", role, "effects = { deny = [\"network\"] }\n"),
        ("roles.*.plans", role, "plans = [\"a.md\"]\n"),
        ("roles.*.types", role, "types = [\"deploy\"]\n"),
        ("roles.*.pace.alternate", role, "pace = { alternate = \"reviewer\" }\n"),
        ("roles.*.pace.contingent", role, "pace = { contingent = \"reviewer\" }\n"),
        ("roles.*.pace.emergency", role, "pace = { emergency = \"reviewer\" }\n"),
        ("roles.*.network", role, "network = [\"api.example.com\"]\n"),
        ("roles.*.timeout", role, "timeout = \"61s\"\n"),
        ("roles.*.idle_timeout", role, "idle_timeout = \"61s\"\n"),
        ("roles.*.env", role, "env = [\"A\"]\n"),
        ("prices.*.input", price, "[prices.x]\ninput = 1.5\noutput = 2\n"),
        ("prices.*.cached", price, "cached = 0.5\n"),
        ("prices.*.output", price, "[prices.x]\ninput = 1\noutput = 2.5\n"),
        ("approval.*.plans", policy, "[approval.x]\nplans = [\"b.md\"]\nbudget = \"$1\"\n"),
        ("approval.*.budget", policy, "[approval.x]\nplans = [\"a.md\"]\nbudget = \"$2\"\n"),
        ("approval.*.steps", policy, "steps = 3\n"),
        ("approval.*.roles", policy, "roles = [\"coder\"]\n"),
        ("approval.*.contracts", policy, "contracts = [\"cargo test\"]\n"),
        ("approval.*.repairs", policy, "repairs = 1\n"),
        ("groups.*", "[asks.x]\nof = [\"ann\", \"group:leads\"]\n", "[groups]\nleads = [\"ben\"]\n"),
        ("budget.per_day", "", "[budget]\nper_day = \"$20\"\n"),
        ("budget.host_per_day", "", "[budget]\nhost_per_day = \"2M tokens\"\n"),
        ("budget.time_zone", "[budget]\nper_day = \"$20\"\n", "time_zone = \"Europe/Berlin\"\n"),
        ("asks.*.kinds", rule, "kinds = [\"plan\"]\n"),
        ("asks.*.plans", rule, "plans = [\"a.md\"]\n"),
        ("asks.*.owners", rule, "owners = [\"ann\"]\n"),
        ("asks.*.approvals", rule, "approvals = 2\n"),
        ("asks.*.of", rule, "[asks.x]\nof = [\"ann\"]\ndeadline = \"1h\"\n"),
        ("asks.*.self_approval", rule, "self_approval = false\n"),
        ("asks.*.deadline", rule, "[asks.x]\nof = [\"ann\", \"ben\"]\ndeadline = \"2h\"\n"),
        ("asks.*.on_deadline", rule, "on_deadline = \"abort\"\n"),
        ("verify.allow", "", "[verify]\nallow = [\"P112\"]\n"),
        ("verify.warn", "", "[verify]\nwarn = [\"P112\"]\n"),
        ("verify.deny", "", "[verify]\ndeny = [\"warnings\"]\n"),
    ];
    let mut keys = Vec::new();
    leaves(&schema::schema(), "", &mut keys);
    for key in &keys {
        let is_known = elsewhere.contains(&key.as_str()) || changes.iter().any(|(known, ..)| known == key);
        assert!(is_known, "say of `{key}` how it changes what runs, or that it does not");
    }
    let digest = |text: &str| {
        let layer = read::layer(Path::new("planctl.toml"), text);
        layer.unwrap_or_else(|error| panic!("{text}: {error:?}")).effective().digest()
    };
    let mut seen = std::collections::BTreeMap::new();
    for (key, before, change) in changes {
        assert!(keys.iter().any(|known| known == key), "`{key}` is not a key any more");
        // A table that begins anew stands for itself, anything else goes on with what was before.
        let after = if change.starts_with('[') { change.to_owned() } else { format!("{before}{change}") };
        assert_ne!(digest(before), digest(&after), "{key}");
        if let Some(other) = seen.insert(digest(&after), key) {
            panic!("`{key}` and `{other}` look alike to who approves");
        }
    }
}

//! How long runs are kept: old runs go whole, and a backup brings back everything.

use std::os::unix::fs::PermissionsExt;

use super::receiver::sql;
use crate::support::Place;

fn runs(place: &Place) -> Vec<String> {
    let list = place.json(&["ls", "--json"]);
    list["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

fn run(place: &Place) {
    let exec = place.exec();
    place.must(&["plan", "run", "p.md", "--again", "--approve", "--exec", &exec]);
}

#[test]
fn p24_old_runs_go_whole_and_what_stays_is_sound() {
    let place = Place::new();
    place.plan(2, "");
    run(&place);
    run(&place);
    sql(&place, "update runs set ended_at = ended_at - interval '100 days' where number = 1");
    let said = place.must(&["db", "prune", "--older-than", "90d", "--dry-run"]);
    assert!(said.err.contains("at most 1 run would go"), "{said:?}");
    assert_eq!(runs(&place).len(), 2);
    let said = place.must(&["db", "prune", "--older-than", "90d", "--yes"]);
    assert!(said.err.contains("1 run went"), "{said:?}");
    assert_eq!(runs(&place), ["p-2"]);
    assert_eq!(place.planctl(&["plan", "status", "p-1"]).code, 4);
    place.must(&["audit"]);
    // Its name and the end of its history are left, and nothing else of it.
    sql(
        &place,
        "select 1/(count(*) filter (where name = 'p-1' and length(chain) = 32 and seq > 0))::int from pruned_runs",
    );
    for table in ["history", "nodes", "run_settings", "asks"] {
        sql(
            &place,
            &format!("select 1/(count(*) = 0)::int from {table} h join pruned_runs p on p.run = h.run"),
        );
    }
    // Nothing of a run that stays can be taken out.
    for statement in ["delete from history", "update history set name = 'x'", "delete from run_settings"] {
        let said = place.planctl(&["db", "psql", "--owner", "--", "-qAtc", statement]);
        assert!(said.code != 0 && said.err.contains("history is only ever added to"), "{said:?}");
    }
    run(&place);
    assert_eq!(runs(&place), ["p-3", "p-2"]);
    place.must(&["audit"]);
}

/// A plan of two steps whose contracts print more than a history holds; the second prints something else each time.
const LOUD: &str = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Loud\n\n## Steps\n\n### 1. The same\n\n**type:** call\n**contract:**\n\
                    ```bash\nseq 1 20000\n```\nexit_code == 0\n\n### 2. Another\n\n**type:** call\n**contract:**\n```bash\n\
                    seq 1 20000; date +%N\n```\nexit_code == 0\n";

#[test]
fn p24_outputs_that_only_old_runs_name_go_with_them() {
    let place = Place::new();
    std::fs::write(place.path("work/p.md"), LOUD).unwrap();
    run(&place);
    run(&place);
    let kept = |count: u32| sql(&place, &format!("select 1/(count(*) = {count})::int from outputs"));
    kept(3);
    sql(&place, "update outputs set created_at = created_at - interval '2 days'");
    sql(&place, "update runs set ended_at = ended_at - interval '100 days' where number = 1");
    place.must(&["db", "prune", "--older-than", "90d", "--yes"]);
    kept(2);
    let logs = place.must(&["logs", "p-2", "--step", "1", "--tail", "20000"]);
    assert!(logs.out.contains("20000") && logs.out.contains("12345"), "what p-2 printed is whole");
    place.must(&["audit"]);
}

#[test]
fn a_backup_brings_everything_back_into_an_empty_database() {
    let place = Place::new();
    place.plan(2, "");
    run(&place);
    let before = place.must(&["events", "p-1", "--json"]).out;
    place.must(&["db", "backup", "../kept"]);
    let mode = std::fs::metadata(place.path("kept")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let said = place.planctl(&["db", "backup", "../kept"]);
    assert!(said.code == 2 && said.err.contains("it is there already"), "{said:?}");
    let said = place.planctl(&["db", "restore", "../kept"]);
    assert!(said.code != 0 && said.err.contains("the database is not empty"), "{said:?}");
    place.must(&["db", "reset", "--yes"]);
    let said = place.planctl(&["db", "restore", "../no-such-file"]);
    assert_eq!(said.code, 4, "{said:?}");
    // Commands that look have made the tables meanwhile.
    place.must(&["ls"]);
    place.must(&["db", "status"]);
    std::fs::write(place.path("cut"), &std::fs::read(place.path("kept")).unwrap()[..2000]).unwrap();
    let said = place.planctl(&["db", "restore", "../cut"]);
    assert!(said.code == 1 && said.err.contains("the database is empty as before"), "{said:?}");
    place.must(&["db", "restore", "../kept"]);
    assert_eq!(runs(&place), ["p-1"]);
    place.must(&["audit"]);
    assert_eq!(place.must(&["events", "p-1", "--json"]).out, before);
    // The restored database works: with the roles that are no superusers.
    run(&place);
    assert_eq!(runs(&place), ["p-2", "p-1"]);
    place.await_quiet();
}

//! P23: daemons of earlier versions and of this one share a database while they are replaced one by one.

use std::fs;
use std::path::Path;

use uuid::Uuid;

use crate::withdrawn::locking;
use crate::world::{HOST, world_of};

/// Claims as earlier versions wrote them: by the newest schema that their daemons knew.
const CLAIMS: [(u32, &str); 2] =
    [(5, include_str!("earlier/claim_5.sql")), (9, include_str!("earlier/claim_9.sql"))];

#[tokio::test]
async fn p23_b8_daemons_of_earlier_versions_claim_on_the_schema_of_this_one() {
    for (version, claim) in CLAIMS {
        let world = world_of(locking()).await;
        let [first, second] =
            [world.begun_at("/one", &locking()).await, world.begun_at("/two", &locking()).await];
        let mut aside = world.aside().await;
        let mut claimed = Vec::new();
        for run in [&first, &second] {
            let rows = sqlx::query(claim)
                .bind("agent")
                .bind(Uuid::from_u128(run.id.as_u128()))
                .bind(vec!["coder"])
                .bind(run.name.as_bytes())
                .bind(HOST)
                .bind("boot")
                .bind("earlier")
                .bind(true)
                .bind(15_000_000_i64)
                .fetch_all(&mut aside)
                .await;
            claimed.push(rows.unwrap_or_else(|error| panic!("schema {version}: {error}")).len());
        }
        assert_eq!(claimed, [1, 0], "schema {version}: one of them has the lock that both need");
        assert!(
            world.claim(second.id, "this one").await.is_none(),
            "schema {version}: the lock holds here, too"
        );
    }
}

/// The words by which a migration takes something away that an earlier version still uses.
const TAKES_AWAY: [&str; 7] =
    ["drop", "rename", "truncate", "set not null", "alter column", "create or replace", "add constraint"];

#[test]
fn p23_b8_migrations_only_add() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let mut looked_at = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Those before were made while no version was out that could run beside them.
        if name.as_str() < "0010" {
            continue;
        }
        looked_at += 1;
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        let code: String = text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
            // No statement names an index: without it, an earlier version finds the same rows in more time.
            .replace("drop index", "");
        let found: Vec<_> = TAKES_AWAY.iter().filter(|words| code.contains(**words)).collect();
        assert!(found.is_empty(), "{name} takes away what earlier versions use: {found:?}");
    }
    assert!(looked_at > 0);
}

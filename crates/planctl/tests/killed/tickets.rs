//! Tickets: how many transitions may be stored. A transition without one waits in the database until it is killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use super::WAIT_MAX;
use crate::fixture::Fixture;

/// One input is one transition; a transaction that makes two, for a run and for one within it, needs one ticket.
const RATION: &str = "
create table rationed (tickets int not null, taker bigint, input text);
insert into rationed values (0, null, null);
create function ration() returns trigger language plpgsql as $$
begin
  loop
    update rationed set tickets = tickets - 1, taker = txid_current(), input = new.name where tickets > 0 and taker is distinct from txid_current();
    if found or exists (select from rationed where taker = txid_current()) then return new; end if;
    perform pg_sleep(0.001);
  end loop;
end $$;
create trigger ration before insert on history for each row when (new.kind = 'input') execute function ration();
";

/// Ends the sessions of processes that were killed, with what they wait for, and says how many there still were.
const REAP: &str = "
with dead as materialized (
  select pid from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
) select count(pg_terminate_backend(pid, 10000)) from dead";

/// The ration of one database.
pub struct Tickets {
    session: Child,
    asks: ChildStdin,
    hears: BufReader<ChildStdout>,
}

impl Tickets {
    /// Rations the transitions of a fixture; nothing is stored from here on but for tickets.
    pub fn install(fixture: &Fixture) -> Tickets {
        fixture.sql(RATION);
        let mut session = fixture.psql().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut asks = session.stdin.take().unwrap();
        // The session that it ends may be gone already.
        writeln!(asks, "set client_min_messages = error;").unwrap();
        let hears = BufReader::new(session.stdout.take().unwrap());
        Tickets { session, asks, hears }
    }

    /// Lets one transition be stored.
    pub fn give(&mut self) {
        assert_eq!(self.ask("update rationed set tickets = 1 returning tickets"), "1");
    }

    /// Says whether the one transition was stored.
    pub fn is_used(&mut self) -> bool {
        self.ask("select tickets from rationed") == "0"
    }

    /// Says whether the last transition ended the lease of a process that is dead.
    pub fn was_a_lease(&mut self) -> bool {
        self.ask("select input from rationed") == "clock.lease_lost"
    }

    /// Makes sure that nothing comes any more from processes that are dead.
    pub fn reap(&mut self) {
        let begun = Instant::now();
        while self.ask(REAP) != "0" {
            assert!(begun.elapsed() < WAIT_MAX, "a session of the dead goes on");
        }
    }

    /// Says whether the run that everything is about is over.
    pub fn is_over(&mut self) -> bool {
        self.ask("select coalesce(bool_and(status = 'ended'), false) from (select status from runs order by created_at limit 1) r") == "t"
    }

    /// Asks for one value.
    fn ask(&mut self, statement: &str) -> String {
        writeln!(self.asks, "{};", statement.replace('\n', " ")).unwrap();
        let mut line = String::new();
        self.hears.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Tickets {
    fn drop(&mut self) {
        // A panic says what went wrong; that the session is gone as well is of no interest.
        self.session.kill().ok();
        self.session.wait().ok();
    }
}

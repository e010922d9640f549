-- What keeps the tables small and every look at them short, however many runs have ended; and what earlier versions call.

-- Outputs that came under a lease, and the runs whose leases they came under: they are of use once the history of one of
-- these tells of them, and swept where none does. Of all others it is null: they are kept.
alter table outputs add column runs uuid[];
create index outputs_unproven on outputs (created_at) where runs is not null;

-- What the run around one left for it when it was made; null where that has no budget.
alter table sub_plans add column budget json;

-- What is under way is found without a look at what is over.
create index runs_in_line on runs (id) where status = 'queued';
create index runs_not_over on runs (id) where ended_at is null;
create index runs_name on runs (name text_pattern_ops);
create index plans_path on plans (path);
create index asks_waiting on asks (number) where closed_at is null;
create index worktrees_kept on worktrees (run) where removed_at is null;
create index approvals_newest on approvals (plan, id);
create index commands_run on commands (run);
-- What was reported and evaluated of a node, and since when it rests.
create index history_of_node on history (run, node, seq) where kind = 'input' or name = 'node_resting';

-- Ends the statement that calls it where a claim got some of its locks and not all. Daemons of versions that know no
-- `planctl_take_locks` still call it while they are replaced one by one.
create function planctl_all_locked(wanted bigint, got bigint) returns boolean
language plpgsql volatile as $$
begin
  if wanted <> got then
    raise exception 'another claim was quicker' using errcode = 'PL004';
  end if;
  return true;
end $$;

do $$
begin
  if exists (select from pg_roles where rolname = 'planctl_app') then
    -- The bytes under a digest are never changed; what nothing tells of is swept.
    grant update (created_at, runs), delete on outputs to planctl_app;
    grant delete on refusals to planctl_app;
  end if;
end
$$;

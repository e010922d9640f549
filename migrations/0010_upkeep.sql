-- Keeps the tables small and every look at them short, however many runs have ended, and has what earlier versions call.

-- Outputs that came under a lease, and the runs whose leases they came under: they are of use once the history of one of
-- these tells of them, and swept where none does. Of all others it is null: they are kept.
alter table outputs add column runs uuid[];
create index outputs_unproven on outputs (created_at) where runs is not null;

-- Deletes outputs of which the history of no run tells under whose leases they came, and keeps those of which it does. The role
-- by which planctl works may delete no output itself.
create function planctl_sweep_outputs(micros bigint, most bigint, out looked_at bigint, out swept bigint)
language sql security definer set search_path from current as $$
  with old as materialized (
    select o.digest, o.runs from outputs o
    where o.runs is not null and o.created_at < clock_timestamp() - micros * interval '1 microsecond'
    order by o.created_at limit most for update skip locked
  ), told as materialized (
    select o.digest from old o where exists (select from history h
      where h.run = any(o.runs) and h.kind = 'input' and strpos(h.body::text, o.digest) > 0)
  ), kept as (
    update outputs o set runs = null from told t where o.digest = t.digest
  ), gone as (
    delete from outputs o using old where o.digest = old.digest
      and not exists (select from told t where t.digest = o.digest)
    returning o.digest
  )
  select (select count(*) from old), (select count(*) from gone)
$$;
revoke all on function planctl_sweep_outputs(bigint, bigint) from public;

-- The budget that the run around one left for it when it was made; null where that has none.
alter table sub_plans add column budget json;

-- The host that has the workspace of an item's run, so that a claim finds the next item of its host, however many of other
-- hosts are due before. Daemons of earlier versions name none; it is looked up for them.
alter table items add column home text;
update items i set home = w.host from runs r join workspaces w on w.id = r.workspace where r.id = i.run;
create function planctl_item_home() returns trigger
language plpgsql as $$
begin
  select w.host into new.home from runs r join workspaces w on w.id = r.workspace where r.id = new.run;
  return new;
end $$;
create trigger item_home before insert on items
  for each row when (new.home is null) execute function planctl_item_home();
create index items_at_home on items (home, lane, target, due_at, id) where state = 'ready' and served_on is null;

-- Rows of runs under way are found without a look at those that are over.
create index runs_in_line on runs (id) where status = 'queued';
create index runs_not_over on runs (id) where ended_at is null;
create index runs_name on runs (name text_pattern_ops);
create index plans_path on plans (path);
create index asks_waiting on asks (number) where closed_at is null;
create index worktrees_kept on worktrees (run) where removed_at is null;
create index approvals_newest on approvals (plan, id);
create index commands_run on commands (run);
-- Reports and verdicts of a node, and since when it rests.
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
    -- The bytes under a digest are never changed.
    grant update (created_at, runs) on outputs to planctl_app;
    grant execute on function planctl_sweep_outputs(bigint, bigint) to planctl_app;
    grant delete on refusals to planctl_app;
  end if;
end
$$;

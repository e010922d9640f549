-- Removing old runs reads what it removes, and each other run once.

-- All asks of a run are found by an index. It takes the place of the index of open asks, so that a new ask is written into as many
-- indexes as before.
create index asks_of_runs on asks (run);
drop index asks_open;

-- Looks at so many runs at most, in the order in which they were made, beginning after one of them. Removes those that ended long
-- enough ago, with all that is about them alone. Plans, their texts and who approved them stay. A run goes together with all runs within
-- it or not at all: each of them has to be over for as long, its worktree has to be gone, and nobody who was told to end may be at work
-- on it. Returns how many runs went, and the last run that was looked at; null where no further one can be old enough.
create function planctl_prune_2(micros bigint, most int, beginning_after uuid, out gone bigint, out last uuid)
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
declare
  limit_at timestamptz := clock_timestamp() - micros * interval '1 microsecond';
  looked uuid[];
  roots uuid[];
  within uuid[];
  locked uuid[];
  going uuid[];
begin
  gone := 0;
  looked := array(
    select r.id from runs r where r.id > coalesce(beginning_after, '00000000-0000-0000-0000-000000000000'::uuid)
    order by r.id limit most);
  last := looked[cardinality(looked)];
  if exists (select from runs r where r.id = last and r.created_at >= limit_at) then
    last := null;
  end if;

  with recursive family as (
    select l.id as root, l.id from unnest(looked) as l (id)
    where not exists (select from sub_plans c join runs a on a.id = c.parent where c.run = l.id)
    union all
    select f.root, c.run from family f join sub_plans c on c.parent = f.id join runs w on w.id = c.run)
  select array_agg(f.root), array_agg(f.id) into roots, within from family f
  where not exists (select from family k join runs r on r.id = k.id where k.root = f.root
    and (r.ended_at is null or r.ended_at >= limit_at
      or exists (select from items i where i.run = r.id)
      or exists (select from worktrees t where t.run = r.id and t.made_at is not null and t.removed_at is null)));

  -- A run that is taken up again at this moment, or removed by somebody else, is left alone.
  locked := array(select r.id from runs r where r.id = any(within) and r.ended_at < limit_at for update skip locked);
  going := array(select f.id from unnest(roots, within) as f (root, id)
    where not exists (select from unnest(roots, within) as k (root, id) where k.root = f.root and k.id <> all(locked)));
  gone := cardinality(going);
  if gone = 0 then
    return;
  end if;

  insert into pruned_runs (run, name, seq, chain, ended_at)
    select r.id, r.name, r.seq, r.chain, r.ended_at from runs r where r.id = any(going);
  delete from history h where h.run = any(going);
  delete from run_settings s where s.run = any(going);
  delete from nodes n where n.run = any(going);
  delete from refusals f where f.run = any(going);
  delete from messages m where m.run = any(going);
  delete from announced_asks n using asks a where a.number = n.ask and a.run = any(going);
  delete from asks a where a.run = any(going);
  delete from timers t where t.run = any(going);
  delete from locks l where l.run = any(going);
  delete from commands c where c.run = any(going);
  delete from worktrees t where t.run = any(going);
  delete from follow_ups f where f.run = any(going);
  delete from sub_plans c where c.run = any(going) or c.parent = any(going);
  delete from runs r where r.id = any(going);
end $$;
revoke all on function planctl_prune_2(bigint, int, uuid) from public;

-- A claim that began before a lease of the run was revoked gave out the run's next work beside the revoked holder, who may still write
-- in the workspace: it had looked for revoked holders when it began, and for work later. For the rest this is the function of
-- migration 0012.

-- Claims the items that are due first, one for each claimant in turn, and returns each with the place of its claimant, counted
-- from 1. A claimant that somebody paused gets nothing. `reach` says which items are looked at:
--
--   run     in one run: the gates, or the work of these roles
--   roles   on this host, in all runs but `of_runs`: the gates (their target is the host), or the work of these roles that no run
--           serves itself
--   pairs   the same, of each role in `targets` only in the run at the same place in `of_runs`
--   served  on this host, in `of_run` or in all runs but `of_runs`: the work that runs serve themselves
--
-- An item can be claimed when it is due, when no other step has one of its locks, and when its run has no holder of a revoked
-- lease left.
--
-- Each statement sees what committed before it. An item that was found may have been sent out by the very transition that took back
-- another one of its run, so revoked holders are looked for once more before it is claimed.
--
-- Errors: a violation of `items_token`, where a claimant holds a lease under its secret already.
create or replace function planctl_claim_1(
  reach text, of_lane text, of_run uuid, targets text[], of_runs uuid[], on_host text, claimants json)
returns table (
  place int,
  id text, run uuid, node text, visit int, attempt int, work text, available_at timestamptz,
  generation bigint, lease_until timestamptz, hard_deadline timestamptz,
  graph text, revision text, approval bigint, settings text
)
language plpgsql volatile
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  candidate record;
  claimant json;
  ids text[];
  revoked uuid[] := array(select i.run from items i where i.state = 'withdrawn');
  -- The places of claimants without an item.
  waiting int[] := array(
    select c.place::int from json_array_elements(claimants) with ordinality as c (claimant, place)
    where not exists (select from workers k where k.id = c.claimant ->> 'instance' and k.paused) order by c.place);
  -- How many items are looked at: more than are claimed, since other claims may be at the first ones at this moment.
  most int := cardinality(waiting) + 4;
begin
  while cardinality(waiting) > 0 loop
    case reach
    -- In a run, its few items are read and sorted. `offset 0` keeps the planner from walking through those of all runs.
    when 'run' then
      ids := array(select i.id from (select * from items i where i.run = of_run and i.lane = of_lane offset 0) i
        where i.state = 'ready' and i.available_at <= clock_timestamp() and i.run <> all(revoked)
          and (i.locks is null or planctl_locks_are_free(i.locks, i.run, i.node))
          and (of_lane = 'harness' or i.target = any(targets))
        order by i.due_at, i.id limit most);
    when 'roles' then
      ids := array(select f.id from unnest(targets) as t (name), lateral (
        select i.id, i.due_at from items i
        where i.state = 'ready' and i.available_at <= clock_timestamp() and i.run <> all(revoked)
          and (i.locks is null or planctl_locks_are_free(i.locks, i.run, i.node))
          and i.served_on is null and i.home = on_host and i.lane = of_lane and i.target = t.name
          and i.run <> all(of_runs)
        order by i.due_at, i.id limit most) f order by f.due_at, f.id limit most);
    when 'pairs' then
      ids := array(select i.id from unnest(targets, of_runs) as t (name, run),
          lateral (select * from items i where i.run = t.run and i.lane = of_lane offset 0) i
        where i.state = 'ready' and i.available_at <= clock_timestamp() and i.run <> all(revoked)
          and (i.locks is null or planctl_locks_are_free(i.locks, i.run, i.node))
          and i.served_on is null and i.home = on_host and i.target = t.name
        order by i.due_at, i.id limit most);
    when 'served' then
      ids := array(select i.id from items i
        where i.state = 'ready' and i.available_at <= clock_timestamp() and i.run <> all(revoked)
          and (i.locks is null or planctl_locks_are_free(i.locks, i.run, i.node))
          and i.served_on = on_host and i.lane = of_lane and (of_run is null or i.run = of_run)
          and i.run <> all(of_runs)
        order by i.due_at, i.id limit most);
    end case;

    revoked := array(select i.run from items i where i.state = 'withdrawn');
    for candidate in
      select i.id, i.run, i.node, i.locks from items i
      where i.id = any(ids) and i.state = 'ready' and i.run <> all(revoked)
        and (reach = 'run' or (i.served_on is not null) = (reach = 'served'))
      order by i.due_at, i.id limit cardinality(waiting)
      for update skip locked
    loop
      if candidate.locks is not null then
        begin
          perform planctl_take_locks(candidate.locks, candidate.run, candidate.node);
        exception when sqlstate 'PL004' then
          -- Another claim took a lock at this moment, or the item before this one did.
          continue;
        end;
      end if;
      claimant := claimants -> (waiting[1] - 1);
      return query
        update items i set state = 'leased', generation = i.generation + 1,
          token_hash = (claimant ->> 'token_hash')::bytea, host = on_host, boot = claimant ->> 'boot',
          instance = claimant ->> 'instance', own = (claimant ->> 'own')::boolean,
          lease_until = clock_timestamp() + (claimant ->> 'lease_micros')::bigint * interval '1 microsecond',
          hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond'
        from runs r
        where i.id = candidate.id and r.id = candidate.run
        returning waiting[1], i.id, i.run, i.node, i.visit, i.attempt, i.work::text, i.available_at, i.generation,
          i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text;
      waiting := waiting[2:];
    end loop;

    exit when cardinality(ids) < most;
    most := most * 4;
  end loop;
end $$;

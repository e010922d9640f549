-- How items are claimed, and how the state is read that a transition is decided on. As with `planctl_commit_1`, the name of a
-- function ends in a version, and switches of the planner are set for the function alone.

-- Items that wait are found by host, role and age; those that are claimed or revoked, which are few, by their state. No other
-- index may look as good for a claim while the table is nearly empty.
drop index items_due;
create index items_held on items (state, run) where state <> 'ready';

-- Says whether no other step has one of these locks.
create function planctl_locks_are_free(wanted text[], of_run uuid, of_node text) returns boolean
language plpgsql stable
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  return not exists (
    select from locks l where l.name = any(wanted) and (l.run <> of_run or l.node <> of_node));
end $$;

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
-- Errors: a violation of `items_token`, where a claimant holds a lease under its secret already.
create function planctl_claim_1(
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

    for candidate in
      select i.id, i.run, i.node, i.locks from items i
      where i.id = any(ids) and i.state = 'ready'
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

-- Reads what a transition of a run is decided on: its row, records of nodes, the item that proves the event, the time of a
-- timer, usage that the holders of its other items noted, the hash of an earlier line of history, and the time. `reach` says
-- which records: `nodes`, those of `names`; `live`, also those of all nodes that are under way; `all`. A stable function sees
-- one snapshot, whatever commits meanwhile.
create function planctl_read_1(
  of_run uuid, reach text, names text[], of_item text, dead_instance text, of_timer text, line bigint)
returns table (
  seq bigint, chain bytea, head text, graph text, revision text, "now" timestamptz, is_ending boolean,
  nodes text[], records text[],
  generation bigint, item_state text, token_hash bytea, used text, is_over boolean,
  due timestamptz, noted text, lineage bytea
)
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  case reach
  when 'nodes' then
    select array_agg(n.node), array_agg(n.record::text) into nodes, records from nodes n
    where n.run = of_run and n.node = any(names);
  when 'live' then
    select array_agg(n.node), array_agg(n.record::text) into nodes, records from nodes n
    where n.run = of_run
      and (n.node = any(names) or n.state in ('ready', 'working', 'resting', 'checking', 'held'));
  when 'all' then
    select array_agg(n.node), array_agg(n.record::text) into nodes, records from nodes n where n.run = of_run;
  end case;
  return query
    select r.seq, r.chain, r.head::text, r.graph, r.revision, clock_timestamp(), r.active and r.status <> 'active',
      nodes, records, i.generation, i.state, i.token_hash, i.used::text,
      i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() or i.instance = dead_instance,
      (select t.at from timers t where t.run = r.id and t.timer = of_timer),
      (select json_object_agg(u.node, u.used)::text from items u where u.run = r.id and u.lane = 'agent'
        and u.state = 'leased' and u.used is not null and u.id is distinct from of_item),
      (select h.hash from history h where h.run = r.id and h.seq = line)
    from runs r left join items i on i.id = of_item
    where r.id = of_run;
end $$;

-- Usage of judges: the most that a call may use is noted with the gate's lease before it is sent, and charged where the answer is lost.

-- Reads what a transition of a run is decided on: its row, records of nodes, the item that proves the event, the time of a
-- timer, usage that the holders of its other items noted, workers and gates that ask a judge, the hash of an earlier line of history, and the time. `reach` says
-- which records: `nodes`, those of `names`; `live`, also those of all nodes that are under way; `all`. A stable function sees
-- one snapshot, whatever commits meanwhile.
create function planctl_read_2(
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
      (select json_object_agg(u.node, u.used)::text from items u where u.run = r.id
        and u.state = 'leased' and u.used is not null and u.id is distinct from of_item),
      (select h.hash from history h where h.run = r.id and h.seq = line)
    from runs r left join items i on i.id = of_item
    where r.id = of_run;
end $$;

-- Tokens whose number nobody told: by the length of what was said, or the most of a call whose answer was lost.
alter table usage_sums add column estimated_tokens bigint not null default 0;

create or replace function planctl_usage_is_told() returns trigger
language plpgsql as $$
begin
  insert into usage_sums as s (run, node, cached_tokens, estimated_tokens, estimated_micro_usd)
  select new.run, u.node, sum((u.usage ->> 'cached_input_tokens')::bigint),
    coalesce(sum((u.usage ->> 'input_tokens')::bigint + (u.usage ->> 'output_tokens')::bigint)
      filter (where u.usage ->> 'tokens_estimated' = 'true'), 0),
    coalesce(sum((u.usage ->> 'micro_usd')::bigint) filter (where u.usage ->> 'estimated' = 'true'), 0)
  from planctl_usages_of_1(new.node, new.body) u group by u.node
  on conflict (run, node) do update set cached_tokens = s.cached_tokens + excluded.cached_tokens,
    estimated_tokens = s.estimated_tokens + excluded.estimated_tokens,
    estimated_micro_usd = s.estimated_micro_usd + excluded.estimated_micro_usd;
  return null;
end $$;

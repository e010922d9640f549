-- What runs used that decides nothing, and people want to see: tokens that came from a cache, and money that was worked out from a
-- price. Summed as it is told, by whichever release writes the history.
create table usage_sums (
  run                 uuid not null,
  -- The node; empty where an input names none.
  node                text not null,
  cached_tokens       bigint not null,
  estimated_micro_usd bigint not null,
  primary key (run, node)
) with (fillfactor = 50);

-- Returns each usage that an input of the history has charged, with its node.
create function planctl_usages_of_1(of_node text, body json) returns table (node text, usage json)
language sql immutable as $$
  with told as (
    -- The usage of an event replaces what the same worker noted before.
    select of_node as node, case when json_typeof(body #> '{event,said,usage}') = 'object'
      then body #> '{event,said,usage}' else body #> '{event,noted}' end as usage
    union all select of_node, body #> '{event,found,judgement,usage}'
    union all select of_node, body #> '{event,found,usage}'
    union all select taken.key, taken.value from json_each(body -> 'noted') as taken
  )
  select coalesce(t.node, ''), t.usage from told t where json_typeof(t.usage) = 'object'
$$;

create function planctl_usage_is_told() returns trigger
language plpgsql as $$
begin
  insert into usage_sums as s (run, node, cached_tokens, estimated_micro_usd)
  select new.run, u.node, sum((u.usage ->> 'cached_input_tokens')::bigint),
    coalesce(sum((u.usage ->> 'micro_usd')::bigint) filter (where u.usage ->> 'estimated' = 'true'), 0)
  from planctl_usages_of_1(new.node, new.body) u group by u.node
  on conflict (run, node) do update set cached_tokens = s.cached_tokens + excluded.cached_tokens,
    estimated_micro_usd = s.estimated_micro_usd + excluded.estimated_micro_usd;
  return null;
end $$;
create trigger usage_is_told after insert on history for each row
  when (new.kind = 'input' and new.body::text like '%"cached_input_tokens":%') execute function planctl_usage_is_told();

create function planctl_usage_is_forgotten() returns trigger
language plpgsql as $$
begin
  delete from usage_sums s where s.run = old.id;
  return null;
end $$;
create trigger usage_is_forgotten after delete on runs for each row execute function planctl_usage_is_forgotten();

insert into usage_sums (run, node, cached_tokens, estimated_micro_usd)
select h.run, u.node, sum((u.usage ->> 'cached_input_tokens')::bigint),
  coalesce(sum((u.usage ->> 'micro_usd')::bigint) filter (where u.usage ->> 'estimated' = 'true'), 0)
from history h join runs r on r.id = h.run, lateral planctl_usages_of_1(h.node, h.body) u
where h.kind = 'input' and h.body::text like '%"cached_input_tokens":%' group by h.run, u.node;

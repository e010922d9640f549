-- Usage and budgets beyond all counting hold nothing up: a count that no column holds is the most that one holds. Releases before this
-- one took such counts from workers and people, and each transition or claim that met one failed. Where the functions below
-- gave an answer before, they give the same.

-- Returns a count as columns hold it; null of null.
create function planctl_count_1(amount numeric) returns bigint
language sql immutable strict parallel safe as $$
  select greatest(least(amount, 9223372036854775807), -9223372036854775807)::bigint
$$;

create or replace function planctl_use_1(of_workspace bigint, of_tokens bigint, of_micro_usd bigint) returns void
language sql volatile as $$
  insert into used (workspace, quarter, tokens, micro_usd)
  values (of_workspace, date_bin('15 minutes', clock_timestamp(), timestamptz 'epoch'), of_tokens, of_micro_usd)
  on conflict (workspace, quarter) do update set tokens = planctl_count_1(used.tokens::numeric + excluded.tokens),
    micro_usd = planctl_count_1(used.micro_usd::numeric + excluded.micro_usd)
$$;

create or replace function planctl_run_uses() returns trigger
language plpgsql as $$
declare
  before json := old.head -> 'spent';
  after json := new.head -> 'spent';
  of_tokens bigint := planctl_count_1((after ->> 'tokens')::numeric - (before ->> 'tokens')::numeric);
  of_micro_usd bigint := planctl_count_1((after ->> 'micro_usd')::numeric - (before ->> 'micro_usd')::numeric);
begin
  if of_tokens <> 0 or of_micro_usd <> 0 then
    perform planctl_use_1(new.workspace, of_tokens, of_micro_usd);
  end if;
  return null;
end $$;

-- The usage of a run within another one was counted when it was charged there.
create or replace function planctl_run_within_used() returns trigger
language plpgsql as $$
declare
  spent json := new.body #> '{event,found,spent}';
begin
  perform planctl_use_1(r.workspace, planctl_count_1(-(spent ->> 'tokens')::numeric),
    planctl_count_1(-(spent ->> 'micro_usd')::numeric))
  from runs r where r.id = new.run;
  return null;
end $$;

-- Returns the budgets of the day that a run has, by its settings: of its workspace (`project`), and of its machine (`host`). A
-- time zone that nobody knows is UTC.
create or replace function planctl_days_1(of_workspace bigint, of_host text, day json)
returns table (
  scope text, begins timestamptz, until timestamptz, tokens bigint, micro_usd bigint,
  -- With what people added; null where there is none.
  tokens_limit bigint, micro_usd_limit bigint, is_over boolean
)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  zone text := day ->> 'zone';
  here timestamp;
  raised record;
begin
  begin
    here := clock_timestamp() at time zone zone;
  exception when invalid_parameter_value then
    zone := 'UTC';
    here := clock_timestamp() at time zone zone;
  end;
  begins := date_trunc('day', here) at time zone zone;
  until := (date_trunc('day', here) + interval '1 day') at time zone zone;
  foreach scope in array array['project', 'host'] loop
    continue when day -> scope is null;
    if scope = 'project' then
      select planctl_count_1(coalesce(sum(u.tokens), 0)), planctl_count_1(coalesce(sum(u.micro_usd), 0)) into tokens, micro_usd
      from used u where u.workspace = of_workspace and u.quarter >= begins;
    else
      select planctl_count_1(coalesce(sum(u.tokens), 0)), planctl_count_1(coalesce(sum(u.micro_usd), 0)) into tokens, micro_usd
      from workspaces w join used u on u.workspace = w.id and u.quarter >= begins where w.host = of_host;
    end if;
    select coalesce(sum(d.tokens), 0) as tokens, coalesce(sum(d.micro_usd), 0) as micro_usd into raised
    from day_raises d
    where d.host = of_host and d.at >= begins
      and d.workspace is not distinct from case when scope = 'project' then of_workspace end;
    tokens_limit := planctl_count_1((day -> scope ->> 'tokens')::numeric + raised.tokens);
    micro_usd_limit := planctl_count_1((day -> scope ->> 'micro_usd')::numeric + raised.micro_usd);
    is_over := coalesce(tokens >= tokens_limit, false) or coalesce(micro_usd >= micro_usd_limit, false);
    return next;
  end loop;
end $$;

create or replace function planctl_usage_is_told() returns trigger
language plpgsql as $$
begin
  insert into usage_sums as s (run, node, cached_tokens, estimated_tokens, estimated_micro_usd)
  select new.run, u.node, planctl_count_1(sum((u.usage ->> 'cached_input_tokens')::numeric)),
    planctl_count_1(coalesce(sum((u.usage ->> 'input_tokens')::numeric + (u.usage ->> 'output_tokens')::numeric)
      filter (where u.usage ->> 'tokens_estimated' = 'true'), 0)),
    planctl_count_1(coalesce(sum((u.usage ->> 'micro_usd')::numeric) filter (where u.usage ->> 'estimated' = 'true'), 0))
  from planctl_usages_of_1(new.node, new.body) u group by u.node
  on conflict (run, node) do update set cached_tokens = planctl_count_1(s.cached_tokens::numeric + excluded.cached_tokens),
    estimated_tokens = planctl_count_1(s.estimated_tokens::numeric + excluded.estimated_tokens),
    estimated_micro_usd = planctl_count_1(s.estimated_micro_usd::numeric + excluded.estimated_micro_usd);
  return null;
end $$;

-- Returns what runs of a workspace used today, or of all; a time zone that nobody knows is UTC.
create or replace function planctl_spent_today_1(zone text, of_workspace bigint) returns table (tokens bigint, micro_usd bigint)
language plpgsql stable as $$
#variable_conflict use_column
declare
  here timestamp;
begin
  begin
    here := clock_timestamp() at time zone zone;
  exception when invalid_parameter_value then
    zone := 'UTC';
    here := clock_timestamp() at time zone zone;
  end;
  return query select planctl_count_1(coalesce(sum(u.tokens), 0)),
    planctl_count_1(coalesce(sum(u.micro_usd), 0)) from used u
  where u.quarter >= date_trunc('day', here) at time zone zone and (of_workspace is null or u.workspace = of_workspace);
end $$;

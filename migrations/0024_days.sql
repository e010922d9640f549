-- Budgets of a day, which many runs share: what was used is counted where it is charged, and work is held back where it is claimed.

-- What the runs of a workspace used, by quarter of an hour: the days of every time zone begin at one.
create table used (
  workspace   bigint not null,
  quarter     timestamptz not null,
  tokens      bigint not null,
  micro_usd   bigint not null,
  primary key (workspace, quarter)
) with (fillfactor = 50);

-- What people added to the budget of a day, for that day alone.
create table day_raises (
  -- The ask that was answered so.
  item        text primary key,
  -- The workspace; null for a machine.
  workspace   bigint,
  host        text not null,
  tokens      bigint not null,
  micro_usd   bigint not null,
  by          text not null,
  note        text,
  at          timestamptz not null default clock_timestamp()
);
create index day_raises_at on day_raises (host, at);

create function planctl_use_1(of_workspace bigint, of_tokens bigint, of_micro_usd bigint) returns void
language sql volatile as $$
  insert into used (workspace, quarter, tokens, micro_usd)
  values (of_workspace, date_bin('15 minutes', clock_timestamp(), timestamptz 'epoch'), of_tokens, of_micro_usd)
  on conflict (workspace, quarter) do update set tokens = used.tokens + excluded.tokens,
    micro_usd = used.micro_usd + excluded.micro_usd
$$;

create function planctl_run_uses() returns trigger
language plpgsql as $$
declare
  before json := old.head -> 'spent';
  after json := new.head -> 'spent';
  of_tokens bigint := (after ->> 'tokens')::bigint - (before ->> 'tokens')::bigint;
  of_micro_usd bigint := (after ->> 'micro_usd')::bigint - (before ->> 'micro_usd')::bigint;
begin
  if of_tokens <> 0 or of_micro_usd <> 0 then
    perform planctl_use_1(new.workspace, of_tokens, of_micro_usd);
  end if;
  return null;
end $$;
create trigger runs_use after update of head on runs for each row
  when (old.head ->> 'spent' is distinct from new.head ->> 'spent') execute function planctl_run_uses();

-- The usage of a run within another one was counted when it was charged there.
create function planctl_run_within_used() returns trigger
language plpgsql as $$
declare
  spent json := new.body #> '{event,found,spent}';
begin
  perform planctl_use_1(r.workspace, -(spent ->> 'tokens')::bigint, -(spent ->> 'micro_usd')::bigint)
  from runs r where r.id = new.run;
  return null;
end $$;
create trigger runs_within_used after insert on history for each row
  when (new.kind = 'input' and new.name = 'harness.ended') execute function planctl_run_within_used();

-- Returns the budgets of the day that a run has, by its settings: of its workspace (`project`), and of its machine (`host`). A
-- time zone that nobody knows is UTC.
create function planctl_days_1(of_workspace bigint, of_host text, day json)
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
      select coalesce(sum(u.tokens), 0), coalesce(sum(u.micro_usd), 0) into tokens, micro_usd
      from used u where u.workspace = of_workspace and u.quarter >= begins;
    else
      select coalesce(sum(u.tokens), 0), coalesce(sum(u.micro_usd), 0) into tokens, micro_usd
      from workspaces w join used u on u.workspace = w.id and u.quarter >= begins where w.host = of_host;
    end if;
    select coalesce(sum(d.tokens), 0) as tokens, coalesce(sum(d.micro_usd), 0) as micro_usd into raised
    from day_raises d
    where d.host = of_host and d.at >= begins
      and d.workspace is not distinct from case when scope = 'project' then of_workspace end;
    tokens_limit := (day -> scope ->> 'tokens')::bigint + raised.tokens;
    micro_usd_limit := (day -> scope ->> 'micro_usd')::bigint + raised.micro_usd;
    is_over := coalesce(tokens >= tokens_limit, false) or coalesce(micro_usd >= micro_usd_limit, false);
    return next;
  end loop;
end $$;

-- Until when the budget of the day holds an item back. The next sweep takes the item back, and a person is asked.
alter table items add column held_until timestamptz;
create index items_held_back on items (run) where held_until is not null;
create index asks_of_days on asks (run) where closed_at is null and work -> 'ask' ->> 'kind' = 'day_budget';

-- Leaves agents' work in its lane, for the next day, where the budget of this one is used up.
create function planctl_hold_back() returns trigger
language plpgsql as $$
declare
  of_day timestamptz;
begin
  select d.until into of_day
  from runs r join workspaces w on w.id = r.workspace, lateral planctl_days_1(r.workspace, w.host, r.settings -> 'day') d
  where r.id = new.run and r.settings -> 'day' is not null and d.is_over limit 1;
  if not found then
    return new;
  end if;
  if tg_op = 'UPDATE' then
    -- The claim took the locks of the item.
    delete from locks l where l.run = new.run and l.node = new.node;
    new := old;
    new.lease_until := null;
  else
    new.state := 'ready';
    new.generation := new.generation - 1;
    new.token_hash := null;
    new.host := null;
    new.boot := null;
    new.instance := null;
    new.own := null;
    new.lease_until := null;
    new.hard_deadline := null;
  end if;
  new.available_at := of_day;
  new.held_until := of_day;
  return new;
end $$;
create trigger items_are_held_back before insert or update of state on items for each row
  when (new.lane = 'agent' and new.state = 'leased') execute function planctl_hold_back();

-- Runs: a small row each, one row per node that was entered, the history, and the queue.
-- The hot tables carry no foreign keys: `apply` is their only writer, and each key would cost a lookup per row.

create table runs (
  id          uuid primary key,
  plan        bigint not null references plans,
  workspace   bigint not null references workspaces,
  stem        text not null,
  number      int not null,
  name        text not null unique,
  revision    text not null,
  graph       text not null,
  approval    bigint references approvals,
  settings    json not null,
  status      text not null,
  active      boolean not null default false,
  head        json not null,
  seq         bigint not null default 0,
  chain       bytea not null,
  created_at  timestamptz not null,
  started_at  timestamptz,
  ended_at    timestamptz,
  unique (stem, number)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
create unique index one_active_run_per_workspace on runs (workspace) where active;
create index runs_plan on runs (plan, created_at);
create index runs_workspace on runs (workspace, created_at);
create index runs_created on runs (created_at);

create table nodes (
  run         uuid not null,
  node        text not null,
  state       text not null,
  record      json not null,
  primary key (run, node)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

create table history (
  run         uuid not null,
  seq         bigint not null,
  at          timestamptz not null,
  kind        text not null check (kind in ('input', 'fact')),
  name        text not null,
  cause       text not null,
  node        text,
  visit       int,
  attempt     int,
  item        text,
  generation  bigint,
  command     uuid,
  body        json not null,
  hash        bytea not null,
  primary key (run, seq)
) with (autovacuum_vacuum_insert_scale_factor = 0.2);

-- News that did not fit: kept for people, changes nothing.
create table refusals (
  id          bigint generated always as identity primary key,
  run         uuid not null,
  item        text,
  generation  bigint,
  name        text not null,
  reason      text not null,
  body        json not null,
  at          timestamptz not null default clock_timestamp()
);
create index refusals_run on refusals (run, id);

-- One queue for three lanes. The lease stands in the item's own row: claiming, renewing and fencing each touch one row.
-- No column of a lease is indexed, so that a renewal is a HOT update.
create sequence ask_numbers as bigint;
create table items (
  id            text primary key,
  run           uuid not null,
  node          text not null,
  visit         int not null,
  attempt       int not null,
  lane          text not null check (lane in ('agent', 'harness', 'human')),
  target        text not null,
  state         text not null check (state in ('ready', 'leased', 'closed')),
  work          json not null,
  available_at  timestamptz not null,
  due_at        timestamptz not null,
  span_micros   bigint not null,
  generation    bigint not null,
  number        bigint,
  token_hash    bytea,
  host          text,
  boot          text,
  instance      text,
  own           boolean,
  lease_until   timestamptz,
  hard_deadline timestamptz,
  created_at    timestamptz not null,
  closed_at     timestamptz,
  check ((state = 'leased') = (token_hash is not null and lease_until is not null and hard_deadline is not null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
create index items_run on items (run, lane);
create index items_ready on items (lane, target, due_at, id) where state = 'ready';
create index items_leased on items (id) where state = 'leased';
create unique index items_number on items (number) where number is not null;

create table timers (
  run         uuid not null,
  timer       text not null,
  at          timestamptz not null,
  primary key (run, timer)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
create index timers_due on timers (at);

-- What people's doors have accepted, by the key they chose.
create table commands (
  key         text primary key,
  run         uuid not null,
  body_hash   bytea not null,
  seq         bigint not null,
  at          timestamptz not null
);
create index commands_at on commands (at);

create table outputs (
  digest      text primary key,
  bytes       bytea not null,
  created_at  timestamptz not null default clock_timestamp()
);

-- Ends the statement that calls it unless both the run and the item are still what the writer read.
create function planctl_fence(run_holds boolean, item_holds boolean) returns boolean
language plpgsql volatile as $$
begin
  if not run_holds then
    raise exception 'the run has moved on' using errcode = 'PL001';
  end if;
  if not item_holds then
    raise exception 'the item is no longer held' using errcode = 'PL002';
  end if;
  return true;
end $$;

create function planctl_history_is_final() returns trigger
language plpgsql as $$
begin
  raise exception 'history is only ever added to' using errcode = 'PL003';
end $$;
create trigger history_is_final before update or delete on history
  for each row execute function planctl_history_is_final();

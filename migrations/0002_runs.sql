-- Runs: a small row each, one row per node that was entered, the history, and the queue.
-- The hot tables carry neither foreign keys nor checks, and few indexes: `apply` is their only writer, and the server
-- prepares each of them anew for every statement. What they would guard is what `planctl audit` checks.

create table runs (
  id          uuid primary key,
  plan        bigint not null,
  workspace   bigint not null,
  stem        text not null,
  number      int not null,
  -- Stem and number, as in fix-auth-3.
  name        text not null,
  revision    text not null,
  graph       text not null,
  approval    bigint,
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
-- Ids of runs sort by age.
create index runs_plan on runs (plan, id);
create index runs_workspace on runs (workspace, id);

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
  kind        text not null,
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

-- One queue for three lanes, and only what is out: a closed item is deleted, since history tells of it. The lease stands
-- in the item's own row: claiming, renewing and fencing each touch one row. No column of a lease is indexed, so that a
-- renewal is a HOT update.
create table items (
  id            text primary key,
  run           uuid not null,
  node          text not null,
  visit         int not null,
  attempt       int not null,
  lane          text not null,
  target        text not null,
  state         text not null,
  work          json not null,
  available_at  timestamptz not null,
  due_at        timestamptz not null,
  span_micros   bigint not null,
  generation    bigint not null,
  token_hash    bytea,
  host          text,
  boot          text,
  instance      text,
  own           boolean,
  lease_until   timestamptz,
  hard_deadline timestamptz,
  created_at    timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
create index items_run on items (run, lane);
create index items_due on items (state, lane, target, due_at, id);

-- The questions for people, by the numbers that people say; answered ones stay.
create table asks (
  number      bigint generated always as identity primary key,
  item        text not null unique,
  run         uuid not null,
  node        text not null,
  visit       int not null,
  attempt     int not null,
  work        json not null,
  created_at  timestamptz not null,
  closed_at   timestamptz
);
create index asks_open on asks (run) where closed_at is null;

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

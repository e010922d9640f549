-- What a daemon needs: tokens of its API, answers that it keeps, the workers it has seen, and who serves an item.

-- The secret itself is shown once and never stored.
create table tokens (
  id            text primary key,
  name          text not null,
  scope         text not null check (scope in ('worker', 'approve', 'read', 'admin')),
  -- Of a worker: whose work it may claim; empty means any.
  roles         text[] not null,
  hash          bytea not null unique,
  created_at    timestamptz not null default clock_timestamp(),
  expires_at    timestamptz,
  revoked_at    timestamptz,
  last_used_at  timestamptz
);

-- Changes that came over HTTP, and what each was answered, so that a repeated one is answered alike and done once.
create table requests (
  principal     text not null,
  key           text not null,
  route         text not null,
  body_hash     bytea not null,
  -- The call that works on it, so that its own repetition knows itself.
  call          uuid not null,
  status        int,
  answer        bytea,
  at            timestamptz not null default clock_timestamp(),
  primary key (principal, key)
);
create index requests_at on requests (at);

create table workers (
  id            text primary key,
  roles         text[] not null,
  agent         text not null,
  host          text not null,
  version       text not null,
  capacity      int not null,
  paused        boolean not null default false,
  first_seen_at timestamptz not null default clock_timestamp(),
  last_seen_at  timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- The roles that a run's own settings serve; `*` means every role.
alter table runs add column served text[] not null default '{}';
update runs r set served = case
  when r.settings ->> 'exec' is not null then '{*}'::text[]
  else coalesce((select array_agg(role.key order by role.key) from json_each(r.settings -> 'roles') role
    where role.value ->> 'exec' is not null), '{}') end
where json_typeof(r.settings) = 'object';

-- The host whose daemon does this work by the run's own settings; null leaves it to workers of the role.
alter table items add column served_on text;
update items i set served_on = w.host from runs r join workspaces w on w.id = r.workspace
where i.lane = 'agent' and r.id = i.run and r.served && array['*', i.target];
create index items_served on items (served_on, due_at, id) where state = 'ready' and served_on is not null;

-- When the workspace is a queued run's turn: when it was queued, and its class delay. Who waits with it says so again and
-- again; a run that nobody waits with is passed over.
alter table runs add column turn_at timestamptz;
alter table runs add column wanted_at timestamptz;
update runs set turn_at = created_at where status = 'queued';
create index runs_queued on runs (workspace, turn_at, id) where status = 'queued';

-- Streams of notes that steps can subscribe to; notes are only ever added.
create table topics (
  id            bigint generated always as identity primary key,
  name          text not null unique,
  -- The number of its newest note: notes count from 1 without gaps.
  newest        bigint not null,
  posted_at     timestamptz not null default clock_timestamp()
);
create table notes (
  topic         bigint not null references topics,
  number        bigint not null,
  by            text not null,
  body          text not null,
  at            timestamptz not null default clock_timestamp(),
  -- The call that posted it, so that its repetition posts nothing.
  call          uuid not null unique,
  primary key (topic, number)
);

-- The runs that are not over, for the loops of daemons; a transition changes no column of it.
create index runs_open on runs (workspace, id) where ended_at is null;

-- What no two steps use at once. A lock is taken with the claim of an agent's work and goes with its gate's verdict; an
-- item names the locks that its claim has to take.
alter table items add column locks text[];
create table locks (
  name          text primary key,
  run           uuid not null,
  node          text not null,
  since         timestamptz not null default clock_timestamp()
);
create index locks_run on locks (run, node);

-- Ends the statement that calls it where a claim got some of its locks and not all.
create function planctl_all_locked(wanted bigint, got bigint) returns boolean
language plpgsql volatile as $$
begin
  if wanted <> got then
    raise exception 'another claim was quicker' using errcode = 'PL004';
  end if;
  return true;
end $$;

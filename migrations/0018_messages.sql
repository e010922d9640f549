-- Messages to people, and their way to each channel. A daemon writes them from what asks and runs say; no transition does.

-- One thing that people are told. Its key says what it is about, so that nothing is told twice.
create table messages (
  id          uuid primary key,
  workspace   bigint not null,
  run         uuid,
  ask         bigint,
  event       text not null,
  key         text not null unique,
  body        text not null,
  created_at  timestamptz not null default clock_timestamp()
);
create index messages_ask on messages (ask) where ask is not null;
create index messages_created on messages (created_at);

-- What became of a message on one channel. It waits until it is delivered, has failed, or is superseded by the decision.
create table deliveries (
  id          bigint generated always as identity primary key,
  message     uuid not null references messages on delete cascade,
  channel     text not null,
  state       text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed', 'superseded')),
  tries       int not null default 0,
  due_at      timestamptz not null default clock_timestamp(),
  ended_at    timestamptz,
  unique (message, channel)
);
create index deliveries_due on deliveries (due_at) where state = 'waiting';

create table delivery_tries (
  delivery    bigint not null references deliveries on delete cascade,
  number      int not null,
  at          timestamptz not null default clock_timestamp(),
  answer      text not null,
  primary key (delivery, number)
);

-- The asks that people were told of, while no message has said how they ended.
create table announced_asks (
  ask         bigint primary key,
  reminders   int not null default 0,
  remind_at   timestamptz not null
);

-- Up to when runs that ended were looked at, for each host.
create table announced_runs (
  host        text primary key,
  ended_at    timestamptz not null
);
create index runs_ended on runs (ended_at) where ended_at is not null;

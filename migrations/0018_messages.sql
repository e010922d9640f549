-- Messages to people, and the removal of runs that ended long ago.

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

-- The way of a message to one channel. It waits until it is delivered, has failed, or is superseded by the decision.
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

-- The runs that were removed, with the end of their histories: what is left of each, so that nobody takes it for lost.
create table pruned_runs (
  run         uuid primary key,
  name        text not null,
  seq         bigint not null,
  chain       bytea not null,
  ended_at    timestamptz not null,
  pruned_at   timestamptz not null default clock_timestamp()
);

-- A history goes whole, with its run, or not at all.
create function planctl_history_goes_whole() returns trigger
language plpgsql as $$
begin
  if tg_op = 'DELETE' and exists (select from pruned_runs p where p.run = old.run) then
    return old;
  end if;
  raise exception 'history is only ever added to' using errcode = 'PL003';
end $$;
drop trigger history_is_final on history;
create trigger history_is_final before update or delete on history
  for each row execute function planctl_history_goes_whole();
drop trigger settings_are_final on run_settings;
create trigger settings_are_final before update or delete on run_settings
  for each row execute function planctl_history_goes_whole();

-- Removes runs that ended longer ago than this, at most so many, with all that is about them alone. Plans, their texts and who
-- approved them stay. A run stays while one around it or within it is to stay, while its worktree is there, and while somebody
-- who was told to end has not.
create function planctl_prune_1(micros bigint, most int) returns bigint
language plpgsql volatile as $$
declare
  gone uuid[];
  limit_at timestamptz := clock_timestamp() - micros * interval '1 microsecond';
begin
  select array_agg(o.id) into gone from (
    select r.id from runs r
    where r.ended_at < limit_at
      and not exists (select from items i where i.run = r.id)
      and not exists (select from worktrees t where t.run = r.id and t.made_at is not null and t.removed_at is null)
      and not exists (select from sub_plans c join runs w on w.id = c.run
        where c.parent = r.id and (w.ended_at is null or w.ended_at >= limit_at))
      and not exists (select from sub_plans c join runs a on a.id = c.parent where c.run = r.id)
    order by r.ended_at limit most for update skip locked) o;
  if gone is null then
    return 0;
  end if;
  insert into pruned_runs (run, name, seq, chain, ended_at)
    select r.id, r.name, r.seq, r.chain, r.ended_at from runs r where r.id = any(gone);
  delete from history h where h.run = any(gone);
  delete from run_settings s where s.run = any(gone);
  delete from nodes n where n.run = any(gone);
  delete from refusals f where f.run = any(gone);
  delete from messages m where m.run = any(gone);
  delete from announced_asks n using asks a where a.number = n.ask and a.run = any(gone);
  delete from asks a where a.run = any(gone);
  delete from timers t where t.run = any(gone);
  delete from locks l where l.run = any(gone);
  delete from commands c where c.run = any(gone);
  delete from worktrees t where t.run = any(gone);
  delete from follow_ups f where f.run = any(gone);
  delete from sub_plans c where c.run = any(gone) or c.parent = any(gone);
  delete from runs r where r.id = any(gone);
  return cardinality(gone);
end $$;
revoke all on function planctl_prune_1(bigint, int) from public;

do $$
begin
  if exists (select from pg_roles where rolname = 'planctl_app') then
    revoke insert, update, delete on pruned_runs from planctl_app;
  end if;
end
$$;

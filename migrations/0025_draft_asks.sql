-- Asks of drafts, in the same inbox as those of runs. A draft that waits for a person is no run, so its asks name the draft.

create table drafts (
  id          bigint generated always as identity primary key,
  workspace   bigint not null references workspaces,
  -- Tells it from other drafts of its workspace.
  key         text not null,
  goal        text not null,
  -- The rules for its asks as JSON, as the configuration had them when it asked last.
  rules       text not null,
  created_at  timestamptz not null default clock_timestamp(),
  unique (workspace, key)
);

-- An ask is of a run, at a node, or of a draft. Earlier versions read asks together with their runs, and so see no others.
alter table asks alter column run drop not null;
alter table asks alter column node drop not null;
alter table asks alter column visit drop not null;
alter table asks alter column attempt drop not null;
alter table asks add column draft bigint references drafts on delete cascade;
create index asks_of_drafts on asks (draft) where draft is not null;

-- The answers to asks of drafts. Those of runs are in the histories of these.
create table draft_answers (
  item        text primary key references asks (item) on delete cascade,
  -- The answer as JSON.
  answer      text not null,
  by          text not null,
  note        text,
  at          timestamptz not null default clock_timestamp()
);

-- An answer goes with its ask, or not at all.
create function planctl_draft_answer_is_final() returns trigger
language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from asks a where a.item = old.item) then
    return old;
  end if;
  raise exception 'answers are only ever added to' using errcode = 'PL003';
end $$;
create trigger draft_answers_are_final before update or delete on draft_answers
  for each row execute function planctl_draft_answer_is_final();

-- Opens the asks that a draft waits for, each once as long as it stays the same, and takes back what the draft asked before in the
-- same slots; a slot without an ask is only cleared. Returns the numbers of the asks, in the order in which they are wanted.
create function planctl_draft_asks_1(of_workspace bigint, of_key text, of_goal text, of_rules text, wanted json)
returns setof bigint
language plpgsql volatile as $$
declare
  of_draft bigint;
  one record;
  slot text;
  same text;
  taken_back bigint;
  of_ask bigint;
begin
  -- Updating the row has processes of one draft take turns.
  insert into drafts as d (workspace, key, goal, rules) values (of_workspace, of_key, of_goal, of_rules)
    on conflict (workspace, key) do update set rules = excluded.rules returning d.id into of_draft;
  for one in select w ->> 'slot' as slot, w ->> 'digest' as digest, w -> 'ask' as ask, w ->> 'ask' is not null as asks
    from json_array_elements(wanted) w
  loop
    slot := 'draft/' || of_draft || '/' || one.slot || '/';
    same := slot || one.digest || '/';
    update asks a set closed_at = clock_timestamp()
    where a.draft = of_draft and a.closed_at is null and starts_with(a.item, slot)
      and not (one.asks and starts_with(a.item, same));
    continue when not one.asks;
    select count(*) into taken_back from asks a
    where a.draft = of_draft and starts_with(a.item, same) and a.closed_at is not null
      and not exists (select from draft_answers x where x.item = a.item);
    select a.number into of_ask from asks a where a.item = same || taken_back;
    if not found then
      insert into asks (item, draft, work, created_at) values (same || taken_back, of_draft, one.ask, clock_timestamp())
        returning asks.number into of_ask;
    end if;
    return next of_ask;
  end loop;
end $$;

-- Writes a person's answer to an ask of a draft, or their vote for one. Errors: PL004, the ask is closed, or others voted since
-- `seen`, the votes that count as the caller read them; null where the answer takes no votes.
create function planctl_answer_draft_1(of_item text, of_by text, of_answer text, of_about text, of_note text, seen bigint[],
  decides boolean)
returns void
language plpgsql volatile as $$
begin
  perform from asks a where a.item = of_item and a.draft is not null and a.closed_at is null for update;
  if not found
    or seen <> array(select v.id from votes v where v.item = of_item and v.void is null order by v.id)
  then
    raise exception 'others voted, or the ask is closed' using errcode = 'PL004';
  end if;
  if seen is not null then
    update votes v set void = 'the person voted anew' where v.item = of_item and v.void is null and v.voter = of_by;
    insert into votes (item, voter, answer, about, note) values (of_item, of_by, of_answer, of_about, of_note);
  end if;
  if decides then
    insert into draft_answers (item, answer, by, note) values (of_item, of_answer, of_by, of_note);
    update asks a set closed_at = clock_timestamp() where a.item = of_item;
  end if;
end $$;

-- Removes drafts whose asks were all closed longer ago than this.
create function planctl_prune_drafts_1(micros bigint) returns bigint
language plpgsql volatile as $$
declare
  gone bigint[];
  limit_at timestamptz := clock_timestamp() - micros * interval '1 microsecond';
begin
  select array_agg(o.id) into gone from (
    select d.id from drafts d
    where d.created_at < limit_at
      and not exists (select from asks a where a.draft = d.id and (a.closed_at is null or a.closed_at >= limit_at))
    for update skip locked) o;
  if gone is null then
    return 0;
  end if;
  delete from messages m using asks a where m.ask = a.number and a.draft = any(gone);
  delete from announced_asks n using asks a where a.number = n.ask and a.draft = any(gone);
  delete from drafts d where d.id = any(gone);
  return cardinality(gone);
end $$;
revoke all on function planctl_prune_drafts_1(bigint) from public;

do $$
begin
  if exists (select from pg_roles where rolname = 'planctl_app') then
    revoke delete on drafts from planctl_app;
    revoke update, delete on draft_answers from planctl_app;
  end if;
end
$$;

-- Votes of people on asks, and the times at which rules answer asks that nobody has answered.

-- One person's vote for one answer to an ask. The vote that decides is written with the transition that it causes.
create table votes (
  id          bigint generated always as identity primary key,
  item        text not null references asks (item) on delete cascade,
  voter       text not null,
  -- The answer as JSON.
  answer      text not null,
  -- The digest of what the ask showed; a vote about something else counts no more.
  about       text not null,
  note        text,
  at          timestamptz not null default clock_timestamp(),
  -- Why it counts no more.
  void        text
);
create unique index votes_that_count on votes (item, voter) where void is null;
create index votes_of_item on votes (item, id);

-- Writes a vote, and the transition that it causes where it decides. Errors: PL004, the ask is closed, its run has moved on, or
-- others voted since `seen`, the votes that count as the caller read them.
create function planctl_vote_1(of_item text, of_voter text, of_answer text, of_about text, of_note text, seen bigint[],
  transitions json)
returns table (run uuid, is_late boolean, "now" timestamptz, generation bigint, lease_until timestamptz,
  hard_deadline timestamptz, revision text, approval bigint, settings text, served boolean)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  of_commit record;
begin
  -- The run's row is what every transition updates first, so that voters and deciders queue up there.
  perform from runs r where r.id = (select a.run from asks a where a.item = of_item) for update;
  if not exists (select from asks a where a.item = of_item and a.closed_at is null)
    or seen is distinct from
      array(select v.id from votes v where v.item = of_item and v.void is null order by v.id)
  then
    raise exception 'others voted, or the ask is closed' using errcode = 'PL004';
  end if;
  update votes v set void = case when v.voter = of_voter then 'the person voted anew' else 'what it was about has changed' end
  where v.item = of_item and v.void is null and (v.voter = of_voter or v.about <> of_about);
  insert into votes (item, voter, answer, about, note) values (of_item, of_voter, of_answer, of_about, of_note);
  if transitions is null then
    return;
  end if;
  for of_commit in select c.* from planctl_commit_1(transitions) c loop
    if of_commit.is_late then
      raise exception 'the run has moved on' using errcode = 'PL004';
    end if;
    run := of_commit.run;
    is_late := false;
    "now" := of_commit."now";
    generation := of_commit.generation;
    lease_until := of_commit.lease_until;
    hard_deadline := of_commit.hard_deadline;
    revision := of_commit.revision;
    approval := of_commit.approval;
    settings := of_commit.settings;
    served := of_commit.served;
    return next;
  end loop;
end $$;

-- When a rule answers an ask that nobody has answered, how, and which rule.
alter table asks add column deadline_at timestamptz;
alter table asks add column deadline_answer text;
alter table asks add column deadline_rule text;
create index asks_deadlines on asks (deadline_at) where closed_at is null and deadline_at is not null;

-- The settings of a run hold the rules that were approved with it. So an ask has its deadline from the transaction that opens it.
create function planctl_ask_deadline() returns trigger
language plpgsql as $$
declare
  of_kind json;
begin
  select r.settings -> 'asks' -> 'deadlines' -> (new.work -> 'ask' ->> 'kind') into of_kind from runs r where r.id = new.run;
  if of_kind is not null then
    new.deadline_at := new.created_at + (of_kind ->> 'seconds')::bigint * interval '1 second';
    new.deadline_answer := of_kind ->> 'answer';
    new.deadline_rule := of_kind ->> 'rule';
  end if;
  return new;
end $$;
create trigger asks_have_deadlines before insert on asks for each row execute function planctl_ask_deadline();

-- The person who is known to hold a token, where its name is only how they sign.
alter table tokens add column person text;

-- An ask of a run has its deadline from the rules of the run or from the plan's own text, whichever ends first; an ask of a draft has
-- it from the rules of the draft.
create function planctl_ask_deadline_2() returns trigger
language plpgsql as $$
declare
  of_rule json;
  of_text json := new.work -> 'ask' -> 'deadline';
  seconds bigint := (of_text -> 'after' ->> 'secs')::bigint;
begin
  if new.draft is null then
    select r.settings -> 'asks' -> 'deadlines' -> (new.work -> 'ask' ->> 'kind') into of_rule from runs r where r.id = new.run;
  else
    select d.rules::json -> 'deadlines' -> (new.work ->> 'kind') into of_rule from drafts d where d.id = new.draft;
    -- A draft takes no other answer that stops; an earlier planctl may have written one.
    if of_rule ->> 'answer' <> 'reject' then
      of_rule := null;
    end if;
  end if;
  if of_rule is not null and (seconds is null or (of_rule ->> 'seconds')::bigint <= seconds) then
    new.deadline_at := new.created_at + (of_rule ->> 'seconds')::bigint * interval '1 second';
    new.deadline_answer := of_rule ->> 'answer';
    new.deadline_rule := of_rule ->> 'rule';
  elsif seconds is not null then
    new.deadline_at := new.created_at + seconds * interval '1 second';
    new.deadline_answer := of_text ->> 'answer';
    new.deadline_rule := 'the plan';
  end if;
  return new;
end $$;
create or replace trigger asks_have_deadlines before insert on asks for each row execute function planctl_ask_deadline_2();

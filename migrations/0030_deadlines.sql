-- An ask has its deadline from the rules of its run (the trigger of 0019, which fires first) or from the plan's own text, whichever
-- ends first. An ask of a draft has it from the rules of the draft.
create function planctl_own_ask_deadline_1() returns trigger
language plpgsql as $$
declare
  of_rule json;
  of_text json := new.work -> 'ask' -> 'deadline';
  text_at timestamptz := new.created_at + (of_text -> 'after' ->> 'secs')::bigint * interval '1 second';
begin
  if new.draft is not null then
    select d.rules::json -> 'deadlines' -> (new.work ->> 'kind') into of_rule from drafts d where d.id = new.draft;
    -- A draft takes no other answer that stops; an earlier planctl may have written one.
    if of_rule ->> 'answer' = 'reject' then
      new.deadline_at := new.created_at + (of_rule ->> 'seconds')::bigint * interval '1 second';
      new.deadline_answer := of_rule ->> 'answer';
      new.deadline_rule := of_rule ->> 'rule';
    end if;
  elsif new.deadline_at is null and text_at is not null or text_at < new.deadline_at then
    new.deadline_at := text_at;
    new.deadline_answer := of_text ->> 'answer';
    new.deadline_rule := 'the plan';
  end if;
  return new;
end $$;
create trigger asks_have_own_deadlines before insert on asks for each row execute function planctl_own_ask_deadline_1();

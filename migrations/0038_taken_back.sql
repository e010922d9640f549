-- Usage that a worker tells while its work is taken back.

-- Refuses to take an item back whose holder has told other usage than the transition charges for it, which was decided before: it
-- is decided again. Else the holder would have been answered that its usage is kept, and nobody would charge it.
create function planctl_taken_back_is_charged() returns trigger
language plpgsql as $$
declare
  charged json := (select h.body -> 'noted' -> new.node from history h
    where h.run = new.run and h.kind = 'input' order by h.seq desc limit 1);
begin
  if (charged ->> 'input_tokens', charged ->> 'output_tokens', charged ->> 'micro_usd')
    is distinct from (new.used ->> 'input_tokens', new.used ->> 'output_tokens', new.used ->> 'micro_usd')
  then
    raise exception 'the usage of the item is not as it was read' using errcode = 'PL002';
  end if;
  return null;
end $$;
create trigger items_taken_back after update of state on items for each row
  when (old.state = 'leased' and new.state = 'withdrawn' and new.used is not null)
  execute function planctl_taken_back_is_charged();

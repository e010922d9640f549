-- A transition that charges neither tokens nor money calls nothing: most of them change the time alone that their run has spent.
drop trigger runs_use on runs;
create trigger runs_use after update of head on runs for each row
  when (old.head -> 'spent' ->> 'tokens' is distinct from new.head -> 'spent' ->> 'tokens'
    or old.head -> 'spent' ->> 'micro_usd' is distinct from new.head -> 'spent' ->> 'micro_usd')
  execute function planctl_run_uses();

-- Of a run without a budget of the day, nothing but its settings is read before a worker gets an item.
create or replace function planctl_hold_back() returns trigger
language plpgsql as $$
declare
  of_run record;
  of_day timestamptz;
begin
  select r.workspace, r.settings -> 'day' as day into of_run from runs r where r.id = new.run;
  if of_run.day is null then
    return new;
  end if;
  select d.until into of_day
  from workspaces w, lateral planctl_days_1(w.id, w.host, of_run.day) d
  where w.id = of_run.workspace and d.is_over limit 1;
  if not found then
    return new;
  end if;
  if tg_op = 'UPDATE' then
    -- The claim took the locks of the item.
    delete from locks l where l.run = new.run and l.node = new.node;
    new := old;
    new.lease_until := null;
  else
    new.state := 'ready';
    new.generation := new.generation - 1;
    new.token_hash := null;
    new.host := null;
    new.boot := null;
    new.instance := null;
    new.own := null;
    new.lease_until := null;
    new.hard_deadline := null;
  end if;
  new.available_at := of_day;
  new.held_until := of_day;
  return new;
end $$;

-- A transition that charges neither tokens nor money calls nothing: most of them change the time alone that their run has spent.
drop trigger runs_use on runs;
create trigger runs_use after update of head on runs for each row
  when (old.head -> 'spent' ->> 'tokens' is distinct from new.head -> 'spent' ->> 'tokens'
    or old.head -> 'spent' ->> 'micro_usd' is distinct from new.head -> 'spent' ->> 'micro_usd')
  execute function planctl_run_uses();

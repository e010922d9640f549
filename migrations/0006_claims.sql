-- What a claim rests on.

-- The secret of a lease is of one lease: a claim that is repeated under its secret ends here and finds what it got.
-- A renewal changes no column of it.
create unique index items_token on items (token_hash) where state = 'leased';

-- Takes the locks of an item for its node, or ends the statement that calls it where it gets some of them and not all.
create function planctl_take_locks(wanted text[], of_run uuid, of_node text) returns boolean
language plpgsql volatile as $$
declare
  got bigint;
begin
  insert into locks (name, run, node) select name, of_run, of_node from unnest(wanted) as name
  on conflict (name) do update set since = locks.since where locks.run = excluded.run and locks.node = excluded.node;
  get diagnostics got = row_count;
  if got <> cardinality(wanted) then
    raise exception 'another claim was quicker' using errcode = 'PL004';
  end if;
  return true;
end $$;
drop function planctl_all_locked(bigint, bigint);

-- The draft itself beside its asks, so that another machine goes on with it where the one on which it began is lost.

alter table drafts add column record text;
-- Counts what was kept. A machine writes over that which it knows, and nothing else.
alter table drafts add column record_version bigint not null default 0;
alter table drafts add column record_at timestamptz;
create index drafts_by_key on drafts (key);

-- Removes drafts that were kept last, and whose asks were all closed, longer ago than this.
create function planctl_prune_drafts_2(micros bigint) returns bigint
language plpgsql volatile as $$
declare
  gone bigint[];
  limit_at timestamptz := clock_timestamp() - micros * interval '1 microsecond';
begin
  select array_agg(o.id) into gone from (
    select d.id from drafts d
    where coalesce(d.record_at, d.created_at) < limit_at
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
revoke all on function planctl_prune_drafts_2(bigint) from public;

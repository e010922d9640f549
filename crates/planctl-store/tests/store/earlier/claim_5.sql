-- How a daemon of schema 5 claims work of a run.
with candidate as materialized (
  select i.id from items i
  where i.state = 'ready' and i.lane = $1 and i.run = $2 and ($1 = 'harness' or i.target = any($3::text[]))
    and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l
      where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node)))
  order by i.due_at, i.id limit 1 for update skip locked
), locked as (
  insert into locks (name, run, node) select unnest(i.locks), i.run, i.node from items i join candidate c on c.id = i.id
  on conflict (name) do update set since = locks.since
    where locks.run = excluded.run and locks.node = excluded.node
  returning name
), taken as (
  update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7,
    own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond',
    hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond'
  from candidate c
  where i.id = c.id and planctl_all_locked(coalesce(cardinality(i.locks), 0), (select count(*) from locked))
  returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline
)
select t.id, t.run, t.node, t.visit, t.attempt, t.work::text as work, t.available_at, t.generation, t.lease_until,
  t.hard_deadline, r.graph, r.revision
from taken t join runs r on r.id = t.run

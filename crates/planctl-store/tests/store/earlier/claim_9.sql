-- How a daemon of schema 9 claims work of a run.
with candidate as materialized (
  select i.id, i.run, i.node, i.locks from items i
  where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l
      where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node)))
    and i.run <> all(array(select w.run from items w where w.state = 'withdrawn'))
    and i.lane = $1 and i.run = $2 and ($1 = 'harness' or i.target = any($3::text[]))
  order by i.due_at, i.id limit 1 for update skip locked
), taken as (
  update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7,
    own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond',
    hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond'
  from candidate c where i.id = c.id and (c.locks is null or planctl_take_locks(c.locks, c.run, c.node))
  returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline
)
select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until,
  i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings
from taken i join runs r on r.id = i.run

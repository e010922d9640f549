-- apply: write steps
with moved as (
  update runs r set seq = ($21::bigint[])[array_position($19, r.id)], chain = ($22::bytea[])[array_position($19, r.id)],
    head = ($23::text[])[array_position($19, r.id)]::json
  where r.id = any($19::uuid[]) and r.seq = ($20::bigint[])[array_position($19, r.id)]
    and r.chain = ($48::bytea[])[array_position($19, r.id)] and case when ($25::boolean[])[array_position($19, r.id)] then ($24::timestamptz[])[array_position($19, r.id)] between clock_timestamp() - interval '2 seconds' and clock_timestamp() + interval '100 milliseconds' else true end
  returning r.id, array_position($19, r.id) as n, r.served, r.revision, r.approval, r.settings
), proven as (
  delete from items i using moved m where i.id = ($26::text[])[m.n] and i.generation = ($27::bigint[])[m.n]
    and i.state <> 'ready' and i.token_hash = ($28::bytea[])[m.n]
    and i.used::text is not distinct from ($47::text[])[m.n]
  returning i.id
), fence as materialized (
  select planctl_fence((select count(*) from moved) = cardinality($19::uuid[]),
    (select count(*) from proven) = cardinality($19::uuid[])) as holds
), written as (
  insert into history (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  select l.run, l.seq, l.at, l.kind, l.name, l.cause, l.node, l.visit, l.attempt, l.item, l.generation, l.command,
    l.body::json, l.hash
  from fence, unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::int[], $9::int[], $10::text[], $11::bigint[], $12::uuid[], $13::text[], $14::bytea[])
    as l (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  where fence.holds
), noted as (
  insert into nodes (run, node, state, record)
  select n.run, n.node, n.state, n.record::json
  from fence, unnest($15::uuid[], $16::text[], $17::text[], $18::text[]) as n (run, node, state, record)
  where fence.holds
  on conflict (run, node) do update set state = excluded.state, record = excluded.record
), put as (
  insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
    generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks, home)
  select ($36::text[])[m.n], m.id, ($37::text[])[m.n], ($38::int[])[m.n], ($39::int[])[m.n], ($40::text[])[m.n],
    ($41::text[])[m.n], case when ($29::bytea[])[m.n] is null then 'ready' else 'leased' end, ($42::text[])[m.n]::json,
    ($43::timestamptz[])[m.n], ($44::timestamptz[])[m.n], ($45::bigint[])[m.n],
    case when ($29::bytea[])[m.n] is null then 0 else 1 end, ($29::bytea[])[m.n], ($30::text[])[m.n], ($31::text[])[m.n],
    ($32::text[])[m.n], ($33::boolean[])[m.n], clock_timestamp() + ($34::bigint[])[m.n] * interval '1 microsecond',
    case when ($29::bytea[])[m.n] is not null then clock_timestamp() + ($45::bigint[])[m.n] * interval '1 microsecond' end,
    ($24::timestamptz[])[m.n],
    case when ($40::text[])[m.n] = 'agent' and m.served && array['*', ($41::text[])[m.n]] then ($35::text[])[m.n] end,
    string_to_array(($46::text[])[m.n], ','), ($35::text[])[m.n]
  from fence, moved m where fence.holds and ($36::text[])[m.n] is not null
  returning run, generation, lease_until, hard_deadline, served_on is not null as served
)
select m.id as run, clock_timestamp() as now, nullif(p.generation, 0) as generation, p.lease_until, p.hard_deadline,
  m.revision, m.approval, m.settings::text as settings, coalesce(p.served, false) as served
from fence, moved m left join put p on p.run = m.id where fence.holds;

-- apply: write all
with moved as (
  update runs set seq = $21::bigint, chain = $22::bytea, head = $23::json, status = $48::text,
    active = $49::boolean or active and exists (select from items o
      where o.run = $19::uuid and o.lane <> 'human' and o.id is distinct from $26::text),
    revision = coalesce($50::text, revision), graph = coalesce($51::text, graph),
    started_at = case when $49::boolean then coalesce(started_at, $24::timestamptz) else started_at end,
    turn_at = case when $48::text = 'queued' then case when status = 'queued' then turn_at else $53::timestamptz end end,
    ended_at = case when $48::text <> 'ended' then null when status = 'ended' then ended_at else $24::timestamptz end
  where id = $19::uuid and seq = $20::bigint and chain = $67::bytea and case when $25::boolean then $24::timestamptz between clock_timestamp() - interval '2 seconds' and clock_timestamp() + interval '100 milliseconds' else true end
  returning id, served, revision, approval, settings
), proven as (
  select i.id from items i
  where i.id = $26::text and i.generation = $27::bigint and i.state = 'leased'
    and i.used::text is not distinct from $66::text
    and case when $28::bytea is not null then i.token_hash = $28
        else i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() or i.instance = $52::text end
    and exists (select from moved)
  for update
), fence as materialized (
  select planctl_fence(exists (select from moved), $26::text is null or exists (select from proven)) as holds
), written as (
  insert into history (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  select l.run, l.seq, l.at, l.kind, l.name, l.cause, l.node, l.visit, l.attempt, l.item, l.generation, l.command,
    l.body::json, l.hash
  from fence, unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::int[], $9::int[], $10::text[], $11::bigint[], $12::uuid[], $13::text[], $14::bytea[])
    as l (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  where fence.holds
), noted as (
  insert into nodes (run, node, state, record)
  select n.run, n.node, n.state, n.record::json
  from fence, unnest($15::uuid[], $16::text[], $17::text[], $18::text[]) as n (run, node, state, record)
  where fence.holds
  on conflict (run, node) do update set state = excluded.state, record = excluded.record
), taken_back as (
  select i.id, i.node, i.state = 'leased' and i.id is distinct from $26::text as is_held from items i, fence
  where fence.holds and i.id = any($54::text[])
  for update of i
), removed as (
  delete from items i using taken_back b where i.id = b.id and not b.is_held
), withdrawn as (
  update items i set state = 'withdrawn' from taken_back b where i.id = b.id and b.is_held
), put as (
  insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
    generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks, home)
  select p.id, $19::uuid, p.node, p.visit, p.attempt, p.lane, p.target,
    case when t.taken then 'leased' else 'ready' end, p.work::json, p.available_at, p.due_at, p.span,
    case when t.taken then 1 else 0 end, case when t.taken then $29::bytea end,
    case when t.taken then $30::text end, case when t.taken then $31::text end,
    case when t.taken then $32::text end, case when t.taken then $33::boolean end,
    case when t.taken then clock_timestamp() + $34::bigint * interval '1 microsecond' end,
    case when t.taken then clock_timestamp() + p.span * interval '1 microsecond' end, $24::timestamptz,
    case when p.lane = 'agent' and (select served from moved) && array['*', p.target] then $35::text end,
    string_to_array(p.locks, ','), $35::text
  from fence, unnest($36::text[], $37::text[], $38::int[], $39::int[], $40::text[], $41::text[], $42::text[],
    $43::timestamptz[], $44::timestamptz[], $45::bigint[], $47::boolean[], $46::text[])
    as p (id, node, visit, attempt, lane, target, work, available_at, due_at, span, wanted, locks),
    lateral (select p.wanted and not exists (select from taken_back b where b.is_held) as taken) t
  where fence.holds
  on conflict (id) do update set state = excluded.state, work = excluded.work, target = excluded.target,
    available_at = excluded.available_at, due_at = excluded.due_at, span_micros = excluded.span_micros,
    generation = items.generation + 1, token_hash = excluded.token_hash, host = excluded.host, boot = excluded.boot,
    instance = excluded.instance, own = excluded.own, lease_until = excluded.lease_until,
    hard_deadline = excluded.hard_deadline, served_on = excluded.served_on, locks = excluded.locks, used = null
  returning id, node, visit, attempt, lane, work, state, generation, lease_until, hard_deadline, served_on
), taken as (
  select p.generation, p.lease_until, p.hard_deadline, m.revision, m.approval, m.settings::text as settings
  from put p, moved m where p.state = 'leased'
), asked as (
  insert into asks (item, run, node, visit, attempt, work, created_at)
  select id, $19::uuid, node, visit, attempt, work, $24::timestamptz from put where lane = 'human'
  on conflict (item) do update set work = excluded.work, closed_at = null
), closed as (
  update asks a set closed_at = $24::timestamptz from fence where fence.holds and a.item = any($54::text[])
), armed as (
  insert into timers (run, timer, at)
  select $19::uuid, t.timer, t.at from fence, unnest($55::text[], $56::timestamptz[]) as t (timer, at)
  where fence.holds
  on conflict (run, timer) do update set at = excluded.at
), disarmed as (
  delete from timers t using fence where fence.holds and t.run = $19::uuid and t.timer = any($57::text[])
), freed as (
  delete from locks l using fence where fence.holds and l.run = $19::uuid and l.node = any($65::text[])
    and not exists (select from taken_back b where b.is_held and b.node = l.node)
    and not exists (select from items w where w.run = l.run and w.node = l.node and w.state = 'withdrawn')
), answered as (
  insert into commands (key, run, body_hash, seq, at)
  select $58::text, $19::uuid, $59::bytea, $20::bigint + 1, $24::timestamptz
  from fence where fence.holds and $58::text is not null
), moving as (
  select p.id, p.status, p.digest from plans p, runs r, fence
  where fence.holds and $60::text is not null and r.id = $19::uuid and p.id = r.plan
    and p.digest = coalesce($50::text, r.revision) and p.status = any($61::text[])
), moved_plan as (
  update plans p set status = $60::text, updated_at = $24::timestamptz from moving
  where p.id = moving.id and p.status = moving.status and p.digest = moving.digest
  returning p.id, moving.status as was, p.digest
), recorded as (
  insert into plan_transitions (plan, from_status, to_status, by, why, digest, at)
  select id, was, $60::text, $62::text, $63::text, digest, $24::timestamptz from moved_plan
), rung as (
  select pg_notify('planctl', $64::text) from fence where fence.holds and $64::text is not null
)
select fence.holds, clock_timestamp() as now, t.generation, t.lease_until, t.hard_deadline, t.revision, t.approval, t.settings,
  (select count(*) from rung) as rings, exists (select from put where served_on is not null) as served
from fence left join taken t on true;

-- apply: refuse
with old as (delete from refusals r where r.run = $1 and r.id <= (select n.id from refusals n where n.run = $1 order by n.id desc offset 99 limit 1)) insert into refusals (run, item, generation, name, reason, body) values ($1, $2, $3, $4, $5, $6::json);

-- queue: claim in run
with candidate as materialized (select i.id, i.run, i.node, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = $1 and i.run = $2 and ($1 = 'harness' or i.target = any($3::text[])) order by i.due_at, i.id limit 1 for update skip locked), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7, own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond', hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from candidate c where i.id = c.id and (c.locks is null or planctl_take_locks(c.locks, c.run, c.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings from taken i join runs r on r.id = i.run;

-- queue: claim of one
with candidate as materialized (select i.id, i.run, i.node, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = $1 and $2::uuid is null and i.target = ($3::text[])[1] and i.served_on is null and i.home = $5 and i.run <> all($10::uuid[]) and not exists (select from workers k where k.id = $7 and k.paused) order by i.due_at, i.id limit 1 for update skip locked), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7, own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond', hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from candidate c where i.id = c.id and (c.locks is null or planctl_take_locks(c.locks, c.run, c.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings from taken i join runs r on r.id = i.run;

-- queue: claim of any
with candidate as materialized (select i.id, i.run, i.node, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = $1 and $2::uuid is null and i.id = any(array(select f.id from unnest($3::text[]) t (name) cross join lateral (select i.id from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = 'agent' and i.target = t.name and i.served_on is null and i.home = $5 and i.run <> all($10::uuid[]) order by i.due_at, i.id limit 64) f)) and i.served_on is null and i.home = $5 and i.run <> all($10::uuid[]) and not exists (select from workers k where k.id = $7 and k.paused) order by i.due_at, i.id limit 1 for update skip locked), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7, own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond', hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from candidate c where i.id = c.id and (c.locks is null or planctl_take_locks(c.locks, c.run, c.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings from taken i join runs r on r.id = i.run;

-- claims: of one for all
with able as materialized (select array(select s.n::int from unnest($4::text[]) with ordinality as s (instance, n) where not exists (select from workers k where k.id = s.instance and k.paused)) as places), candidate as materialized (select i.id, i.due_at, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = 'agent' and i.target = ($1::text[])[1] and i.served_on is null and i.home = $2 order by i.due_at, i.id limit (select cardinality(places) from able) for update skip locked), chosen as materialized (select array(select c.id from candidate c where c.locks is null or not exists (select from candidate e where e.locks && c.locks and (e.due_at, e.id) < (c.due_at, c.id))) as ids), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = ($3::bytea[])[a.places[array_position(c.ids, i.id)]], instance = ($4::text[])[a.places[array_position(c.ids, i.id)]], host = $2, boot = '', own = false, lease_until = clock_timestamp() + interval '1 microsecond' * ($5::bigint[])[a.places[array_position(c.ids, i.id)]], hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from able a, chosen c where i.id = any(c.ids) and (i.locks is null or planctl_take_locks(i.locks, i.run, i.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline, a.places[array_position(c.ids, i.id)] as place) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings, i.place from taken i join runs r on r.id = i.run;

-- claims: of any for all
with able as materialized (select array(select s.n::int from unnest($4::text[]) with ordinality as s (instance, n) where not exists (select from workers k where k.id = s.instance and k.paused)) as places), candidate as materialized (select i.id, i.due_at, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = 'agent' and i.id = any(array(select f.id from unnest($1::text[]) t (name) cross join lateral (select i.id from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = 'agent' and i.target = t.name and i.served_on is null and i.home = $2 order by i.due_at, i.id limit 64 + cardinality($4::text[])) f)) and i.served_on is null and i.home = $2 order by i.due_at, i.id limit (select cardinality(places) from able) for update skip locked), chosen as materialized (select array(select c.id from candidate c where c.locks is null or not exists (select from candidate e where e.locks && c.locks and (e.due_at, e.id) < (c.due_at, c.id))) as ids), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = ($3::bytea[])[a.places[array_position(c.ids, i.id)]], instance = ($4::text[])[a.places[array_position(c.ids, i.id)]], host = $2, boot = '', own = false, lease_until = clock_timestamp() + interval '1 microsecond' * ($5::bigint[])[a.places[array_position(c.ids, i.id)]], hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from able a, chosen c where i.id = any(c.ids) and (i.locks is null or planctl_take_locks(i.locks, i.run, i.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline, a.places[array_position(c.ids, i.id)] as place) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings, i.place from taken i join runs r on r.id = i.run;

-- queue: claim among
with candidate as materialized (select i.id, i.run, i.node, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = $1 and $2::uuid is null and (i.target, i.run) in (select * from unnest($3::text[], $10::uuid[])) and i.served_on is null and i.home = $5 and not exists (select from workers k where k.id = $7 and k.paused) order by i.due_at, i.id limit 1 for update skip locked), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7, own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond', hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from candidate c where i.id = c.id and (c.locks is null or planctl_take_locks(c.locks, c.run, c.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings from taken i join runs r on r.id = i.run;

-- queue: claim served
with candidate as materialized (select i.id, i.run, i.node, i.locks from items i where i.state = 'ready' and i.available_at <= clock_timestamp() and (i.locks is null or not exists (select from locks l where l.name = any(i.locks) and (l.run <> i.run or l.node <> i.node))) and i.run <> all(array(select w.run from items w where w.state = 'withdrawn')) and i.lane = $1 and ($2::uuid is null or i.run = $2) and $3::text[] is not null and i.served_on = $5 and i.run <> all($10::uuid[]) order by i.due_at, i.id limit 1 for update skip locked), taken as (update items i set state = 'leased', generation = i.generation + 1, token_hash = $4, host = $5, boot = $6, instance = $7, own = $8, lease_until = clock_timestamp() + $9::bigint * interval '1 microsecond', hard_deadline = clock_timestamp() + i.span_micros * interval '1 microsecond' from candidate c where i.id = c.id and (c.locks is null or planctl_take_locks(c.locks, c.run, c.node)) returning i.id, i.run, i.node, i.visit, i.attempt, i.work, i.available_at, i.generation, i.lease_until, i.hard_deadline) select i.id, i.run, i.node, i.visit, i.attempt, i.work::text as work, i.available_at, i.generation, i.lease_until, i.hard_deadline, r.graph, r.revision, r.approval, r.settings::text as settings from taken i join runs r on r.id = i.run;

-- leases: renew
update items set lease_until = least(hard_deadline, clock_timestamp() + $4::bigint * interval '1 microsecond') where id = $1 and generation = $2 and token_hash = $3 and state = 'leased' returning lease_until, hard_deadline, hard_deadline <= clock_timestamp() as is_over;

-- leases: renew waiting
update items set hard_deadline = clock_timestamp() + span_micros * interval '1 microsecond', lease_until = clock_timestamp() + least($4::bigint, span_micros) * interval '1 microsecond' where id = $1 and generation = $2 and token_hash = $3 and state = 'leased' returning lease_until, hard_deadline, false as is_over;

-- leases: note usage
update items set used = $4::json where id = $1 and generation = $2 and token_hash = $3 and state = 'leased';

-- lookups: set settings
update runs set settings = $2::json, served = $3::text[] where id = $1;

-- sealed: seal
select planctl_seal_settings($1);

-- lookups: set served items
update items i set served_on = case when r.served && array['*', i.target] then w.host end from runs r join workspaces w on w.id = r.workspace where r.id = $1 and i.run = r.id and i.lane = 'agent';

-- runs: new sub-plan
with run as (insert into runs (id, plan, workspace, stem, number, name, revision, graph, approval, settings, status, head, chain, created_at, served, apart) select $1, p.id, p.workspace, $3, n.number, $3 || '-' || n.number, v.digest, v.graph, $5, $6::json, $7, $8::json, $9, $10, $11::text[], $12::text is not null from plans p join revisions v on v.plan = p.id and v.digest = $4, (select coalesce(max(number), 0) + 1 as number from runs where stem = $3) n where p.id = $2 on conflict (id) do nothing returning id), made as (insert into commands (key, run, body_hash, seq, at) select $13::text, id, ''::bytea, 0, $10 from run where $13::text is not null) insert into sub_plans (run, parent, item, place, depth, budget) select id, $14, $15, $16, $17, $18::json from run;

-- sub_plans: wake around
update items i set available_at = clock_timestamp(), due_at = clock_timestamp() from sub_plans c join runs r on r.id = c.run where c.item = i.id and r.status = 'ended' and i.state = 'ready' and i.lane = 'harness' and i.available_at > clock_timestamp() + interval '1 year' and not exists (with recursive within as (select c.run as id union select c.run from within w join sub_plans c on c.parent = w.id) select from within w where exists (select from items i where i.run = w.id and i.state = 'withdrawn') or w.id <> c.run and exists (select from runs n where n.id = w.id and n.ended_at is null)) returning i.run;

-- outputs: put output
insert into outputs (digest, bytes) values ($1, $2) on conflict (digest) do update set runs = null where outputs.runs is not null;

-- outputs: put output under
insert into outputs (digest, bytes, runs) select $1, $2, array[i.run] from items i where i.id = $3 and i.generation = $4 and i.token_hash = $5 and i.state = 'leased' on conflict (digest) do update set created_at = clock_timestamp(), runs = case when outputs.runs @> excluded.runs then outputs.runs else outputs.runs || excluded.runs end where outputs.runs is not null;

-- plans: workspace
insert into workspaces (host, path) values ($1, $2) on conflict (host, path) do update set path = excluded.path returning id;

-- plans: keep graph
insert into graphs (digest, body) values ($1, $2::json) on conflict (digest) do nothing;

-- plans: keep revision
insert into revisions (plan, digest, source, graph) values ($1, $2, $3, $4) on conflict (plan, digest) do update set source = excluded.source, graph = excluded.graph;

-- plans: new plan
insert into plans (workspace, path, digest) values ($1, $2, $3) on conflict (workspace, path) do nothing;

-- plans: move plan
update plans set status = $2, digest = $3, updated_at = clock_timestamp() where id = $1;

-- plans: record move
insert into plan_transitions (plan, from_status, to_status, by, why, digest) values ($1, $2, $3, $4, $5, $6);

-- plans: void others
update approvals set voided_at = clock_timestamp(), voided_why = $3 where plan = $1 and voided_at is null and ($2::text is null or digest <> $2);

-- plans: approve
insert into approvals (workspace, plan, digest, config_digest, config, protected, by, note, nonce) select p.workspace, p.id, $2, $3, $4::json, $5::json, $6, $7, $8 from plans p where p.id = $1 on conflict (nonce) do nothing;

-- runs: new run
with run as (insert into runs (id, plan, workspace, stem, number, name, revision, graph, approval, settings, status, head, chain, created_at, served, apart) select $1, p.id, p.workspace, $3, n.number, $3 || '-' || n.number, v.digest, v.graph, $5, $6::json, $7, $8::json, $9, $10, $11::text[], $12::text is not null from plans p join revisions v on v.plan = p.id and v.digest = $4, (select coalesce(max(number), 0) + 1 as number from runs where stem = $3) n where p.id = $2 on conflict (id) do nothing returning id), made as (insert into commands (key, run, body_hash, seq, at) select $13::text, id, ''::bytea, 0, $10 from run where $13::text is not null) select id from run;

-- runs: new run apart
with run as (insert into runs (id, plan, workspace, stem, number, name, revision, graph, approval, settings, status, head, chain, created_at, served, apart) select $1, p.id, p.workspace, $3, n.number, $3 || '-' || n.number, v.digest, v.graph, $5, $6::json, $7, $8::json, $9, $10, $11::text[], $12::text is not null from plans p join revisions v on v.plan = p.id and v.digest = $4, (select coalesce(max(number), 0) + 1 as number from runs where stem = $3) n where p.id = $2 on conflict (id) do nothing returning id, name || '-' || right(replace(id::text, '-', ''), 6) as own), made as (insert into commands (key, run, body_hash, seq, at) select $13::text, id, ''::bytea, 0, $10 from run where $13::text is not null) insert into worktrees (run, root, path, branch, base, left_behind) select id, $12 || '/' || own, $12 || '/' || own || $14, 'planctl/' || own, $15, $16 from run;

-- worktrees: made
update worktrees set made_at = coalesce(made_at, clock_timestamp()), trouble = null where run = $1;

-- worktrees: trouble
update worktrees set trouble = $2 where run = $1 and made_at is null and trouble is distinct from $2;

-- worktrees: base
update worktrees set base = $2, left_behind = $3 where run = $1 and made_at is null;

-- worktrees: again
update worktrees set trouble = null where run = $1;

-- worktrees: result
update worktrees set result = $2, uncommitted = $3, seen_seq = $4 where run = $1;

-- worktrees: removed
update worktrees set removed_at = coalesce(removed_at, clock_timestamp()) where run = $1;

-- runs: attach approval
update runs set approval = $2 where id = $1;

-- tokens: new token
insert into tokens (id, name, scope, roles, hash, expires_at, request) values ($1, $2, $3, $4::text[], $5, clock_timestamp() + $6::bigint * interval '1 microsecond', $7) on conflict do nothing;

-- tokens: token of
with used as (update tokens set last_used_at = clock_timestamp() where hash = $1 and revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')) select id, name, scope, roles, created_at, expires_at, revoked_at, last_used_at, revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) as is_live from tokens where hash = $1 and revoked_at is null and (expires_at is null or expires_at > clock_timestamp());

-- tokens: revoke token
update tokens set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = $1;

-- requests: begin request
insert into requests (principal, key, route, body_hash, call) values ($1, $2, $3, $4, $5) on conflict (principal, key) do update set route = excluded.route, body_hash = excluded.body_hash, call = excluded.call, status = null, answer = null, at = clock_timestamp(), id = case when requests.at < clock_timestamp() - $6::bigint * interval '1 microsecond' then excluded.id else requests.id end where requests.call = $5 or requests.at < clock_timestamp() - $6::bigint * interval '1 microsecond' or (requests.status is null and requests.route = $3 and requests.body_hash = $4 and (requests.call is null or requests.at < clock_timestamp() - $7::bigint * interval '1 microsecond')) returning id;

-- requests: answer request
update requests set status = $5, answer = $6 where principal = $1 and key = $2 and route = $3 and body_hash = $4 and status is null;

-- requests: leave request
update requests set call = null where principal = $1 and key = $2 and call = $3 and status is null;

-- requests: sweep requests
delete from requests where at < clock_timestamp() - $1::bigint * interval '1 microsecond';

-- requests: sweep commands
delete from commands where at < clock_timestamp() - $1::bigint * interval '1 microsecond';

-- topics: post note
with topic as (insert into topics (name, newest) values ($1, 1) on conflict (name) do update set newest = topics.newest + 1, posted_at = clock_timestamp() returning id, newest) insert into notes (topic, number, by, body, call) select id, newest, $2, $3, $4 from topic;

-- turns: want
update runs set wanted_at = clock_timestamp() where id = $1 and status = 'queued' and (wanted_at is null or wanted_at < clock_timestamp() - interval '1 second');

-- withdrawn: acknowledge
with gone as (delete from items i where i.state = 'withdrawn' and i.id = $1 and i.generation = $2 and i.token_hash = $3 returning i.run, i.node), freed as (delete from locks l using gone g where l.run = g.run and l.node = g.node) select distinct run from gone;

-- withdrawn: release lost
with gone as (delete from items i where i.state = 'withdrawn' and (i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() or i.own and i.host = $1 and i.instance = any($2::text[])) returning i.run, i.node), freed as (delete from locks l using gone g where l.run = g.run and l.node = g.node) select distinct run from gone;

-- withdrawn: leave workspace
with left_over as (select o.id, o.seq from runs r join runs o on o.workspace = r.workspace and o.active and not o.apart where r.id = $1 and not r.apart union select r.id, r.seq from runs r where r.id = $1 and r.active) update runs o set active = false from left_over l where o.id = l.id and o.seq = l.seq and o.status <> 'active' and not exists (with recursive within as (select o.id as id union select c.run from within w join sub_plans c on c.parent = w.id) select from within w where exists (select from items i where i.run = w.id and i.state = 'withdrawn') or w.id <> o.id and exists (select from runs n where n.id = w.id and n.ended_at is null));

-- workers: see worker
insert into workers (id, roles, agent, host, version, capacity) values ($1, $2::text[], $3, $4, $5, $6) on conflict (id) do update set roles = excluded.roles, agent = excluded.agent, host = excluded.host, version = excluded.version, capacity = excluded.capacity, last_seen_at = clock_timestamp() returning xmax = 0 as is_new;

-- workers: pause worker
update workers set paused = $2 where id = $1;

-- workers: forget workers
delete from workers where id in (select id from workers where not paused and (last_seen_at < clock_timestamp() - interval '1 day' or id in (select id from workers where not paused order by last_seen_at desc, id offset $1)) for update skip locked);

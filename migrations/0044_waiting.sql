-- An item that a transition sends out is leased to a worker that waits for it, in the same transaction: a claim of its own costs a
-- commit, for which the worker would wait. To all that earlier versions write, the function answers as before (0011).

create function planctl_is_paused(worker text) returns boolean
language plpgsql stable
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (select from workers k where k.id = worker and k.paused);
end $$;

-- Writes transitions that planctl decided, each of another run, in the order in which they are given. All are written in one
-- transaction. A transition whose run has moved on since it was decided changes nothing and is returned as late; any other
-- obstacle raises an error, which undoes all.
--
-- The function waits half a second for a lock at most, so that a run that somebody has locked for long doesn't delay the
-- others of its batch: they are written alone then.
--
-- JSON within a transition comes as text, because reading a string that JSON escapes twice can't fail on `\u0000`.
--
-- Errors: PL002, the item that proves a transition is no longer held as it was read. Violations of
-- `one_active_run_per_workspace` and of `commands_pkey`.
create or replace function planctl_commit_1(transitions json)
returns table (
  run uuid,
  is_late boolean,
  "now" timestamptz,
  -- The lease of the item that is leased at once, and what the work of the run rests on.
  generation bigint, lease_until timestamptz, hard_deadline timestamptz,
  revision text, approval bigint, settings text,
  -- Says that a new item is work that its run serves itself.
  served boolean
)
language plpgsql volatile
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '500ms'
as $$
#variable_conflict use_column
declare
  t record;
  of_run record;
  of_item record;
  of_plan record;
  may_lease boolean;
begin
  for t in
    select x.*, planctl_time(x.at_micros) as at from json_to_recordset(transitions) as x (
      run uuid, seq bigint, chain bytea, at_micros bigint, is_estimated boolean,
      item text, generation bigint, token_hash bytea, dead_instance text, used text,
      new_seq bigint, new_chain bytea, head text, status text, is_active boolean, new_revision text, new_graph text,
      turn_micros bigint, cause text, command uuid, history json, nodes json,
      removed text[], items json, home text,
      armed json, disarmed text[], freed text[],
      key text, body_hash bytea, plan json, notification text)
  loop
    run := t.run;
    served := false;
    generation := null;

    -- The run must be exactly what the transition was decided on; a time that the caller estimated must be near.
      update runs r set
        seq = t.new_seq, chain = t.new_chain, head = t.head::json, status = t.status, active = r.active or t.is_active,
        revision = coalesce(t.new_revision, r.revision), graph = coalesce(t.new_graph, r.graph),
        started_at = case when t.is_active then coalesce(r.started_at, t.at) else r.started_at end,
        turn_at = case when t.status = 'queued' then
          case when r.status = 'queued' then r.turn_at else planctl_time(t.turn_micros) end end,
        ended_at = case when t.status = 'ended' then case when r.status = 'ended' then r.ended_at else t.at end end
      where r.id = t.run and r.seq = t.seq and r.chain = t.chain
        and (not t.is_estimated
          or t.at between clock_timestamp() - interval '2 seconds' and clock_timestamp() + interval '100 milliseconds')
      returning r.plan, r.active, r.served, r.revision, r.approval, r.settings into of_run;
      is_late := not found;
    if is_late then
      "now" := clock_timestamp();
      return next;
      continue;
    end if;

    -- The item that proves the event must be held under the lease that was read, or that lease must be over. It goes; where
    -- it is dispatched again, it comes back under its next generation.
    if t.item is not null then
      delete from items i
      where i.id = t.item and i.generation = t.generation and i.state = 'leased'
        and i.used::text is not distinct from t.used
        and case when t.token_hash is not null then i.token_hash = t.token_hash
          else i.lease_until < clock_timestamp() or i.hard_deadline < clock_timestamp() or i.instance = t.dead_instance end;
      if not found then
        raise exception 'the item is no longer held' using errcode = 'PL002';
      end if;
    end if;

    -- What happened, and the states of the nodes that it changed.
    with lines as (
      insert into history (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
      select t.run, l.seq, t.at, l.kind, l.name, t.cause, l.node, l.visit, l.attempt,
        case when l.kind = 'input' then t.item end, case when l.kind = 'input' then t.generation end,
        case when l.kind = 'input' then t.command end, l.body::json, l.hash
      from json_to_recordset(t.history) as l (seq bigint, kind text, name text, node text, visit int, attempt int,
        body text, hash bytea)
    )
    insert into nodes (run, node, state, record)
    select t.run, n.node, n.state, n.record::json
    from json_to_recordset(t.nodes) as n (node text, state text, record text)
    on conflict (run, node) do update set state = excluded.state, record = excluded.record;

    -- Other items that are over go as well. One that somebody holds is revoked instead: it stays until its holder has ended.
    -- Each is locked first, since a claim of it may be under way.
    if t.removed is not null then
      perform from items i where i.id = any(t.removed) for update;
      update items i set state = 'withdrawn' where i.id = any(t.removed) and i.state = 'leased';
      delete from items i where i.id = any(t.removed) and i.state <> 'withdrawn';
      update asks a set closed_at = t.at where a.item = any(t.removed);
    end if;

    -- New items. One that is leased at once brings its holder. It is left to be claimed later while a revoked holder may still
    -- write in the workspace, and where locks are to be taken first; and by a worker that waits, where somebody paused that worker
    -- or the run serves the work itself.
    if t.items is not null then
      may_lease := not exists (select from items w where w.run = t.run and w.state = 'withdrawn');
      for of_item in
        insert into items as i (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros,
          generation, token_hash, host, boot, instance, own, lease_until, hard_deadline, created_at, served_on, locks, home)
        select x.id, t.run, x.node, x.visit, x.attempt, x.lane, x.target, case when x.leased then 'leased' else 'ready' end,
          x.work::json, planctl_time(x.available_micros), planctl_time(x.due_micros), x.span_micros,
          case when x.id = t.item then t.generation else 0 end + case when x.leased or x.id = t.item then 1 else 0 end,
          case when x.leased then x.token_hash end, case when x.leased then t.home end, case when x.leased then x.boot end,
          case when x.leased then x.instance end, case when x.leased then x.own end,
          case when x.leased then clock_timestamp() + x.lease_micros * interval '1 microsecond' end,
          case when x.leased then clock_timestamp() + x.span_micros * interval '1 microsecond' end, t.at,
          case when x.is_served then t.home end, x.locks, t.home
        from (select p.*, s.is_served, p.token_hash is not null and p.locks is null and may_lease
              and (p.own or not s.is_served and not planctl_is_paused(p.instance)) as leased
            from json_to_recordset(t.items) as p (id text, node text, visit int, attempt int, lane text, target text, work text,
                available_micros bigint, due_micros bigint, span_micros bigint, locks text[],
                token_hash bytea, boot text, instance text, own boolean, lease_micros bigint),
              lateral (select p.lane = 'agent' and of_run.served && array['*', p.target] as is_served) s
            offset 0) x
        on conflict (id) do update set state = excluded.state, work = excluded.work, target = excluded.target,
          available_at = excluded.available_at, due_at = excluded.due_at, span_micros = excluded.span_micros,
          generation = i.generation + 1, token_hash = excluded.token_hash, host = excluded.host, boot = excluded.boot,
          instance = excluded.instance, own = excluded.own, lease_until = excluded.lease_until,
          hard_deadline = excluded.hard_deadline, served_on = excluded.served_on, locks = excluded.locks, used = null
        returning i.id, i.node, i.visit, i.attempt, i.lane, i.work, i.state, i.generation, i.lease_until, i.hard_deadline,
          i.served_on
      loop
        served := served or of_item.served_on is not null;
        if of_item.state = 'leased' then
          generation := of_item.generation;
          lease_until := of_item.lease_until;
          hard_deadline := of_item.hard_deadline;
        end if;
        if of_item.lane = 'human' then
          insert into asks (item, run, node, visit, attempt, work, created_at)
          values (of_item.id, t.run, of_item.node, of_item.visit, of_item.attempt, of_item.work, t.at)
          on conflict (item) do update set work = excluded.work, closed_at = null;
        end if;
      end loop;
    end if;

    -- A run that is not under way any more keeps its workspace as long as somebody may still work on an item of it.
    if of_run.active and not t.is_active
      and not exists (select from items i where i.run = t.run and i.lane <> 'human')
    then
      update runs r set active = false where r.id = t.run;
    end if;

    if t.armed is not null then
      insert into timers (run, timer, at)
      select t.run, a.timer, planctl_time(a.at_micros)
      from json_to_recordset(t.armed) as a (timer text, at_micros bigint)
      on conflict (run, timer) do update set at = excluded.at;
    end if;
    if t.disarmed is not null then
      delete from timers a where a.run = t.run and a.timer = any(t.disarmed);
    end if;

    -- A node keeps its locks while a revoked holder of its work is left.
    if t.freed is not null then
      delete from locks l where l.run = t.run and l.node = any(t.freed)
        and not exists (select from items i where i.run = l.run and i.node = l.node and i.state = 'withdrawn');
    end if;

    if t.key is not null then
      insert into commands (key, run, body_hash, seq, at) values (t.key, t.run, t.body_hash, t.seq + 1, t.at);
    end if;

    -- The plan's status follows its run, unless somebody has saved another text or moved the plan in the meantime.
    if t.plan is not null then
      select p.id, p.status, p.digest into of_plan from plans p
      where p.id = of_run.plan and p.digest = of_run.revision
        and p.status in (select json_array_elements_text(t.plan -> 'from'))
      for update;
      if found then
        update plans p set status = t.plan ->> 'to', updated_at = t.at where p.id = of_plan.id;
        insert into plan_transitions (plan, from_status, to_status, by, why, digest, at)
        values (of_plan.id, of_plan.status, t.plan ->> 'to', t.plan ->> 'by', t.plan ->> 'why', of_plan.digest, t.at);
      end if;
    end if;

    if t.notification is not null then
      perform pg_notify('planctl', t.notification);
    end if;

    revision := of_run.revision;
    approval := of_run.approval;
    settings := of_run.settings::text;
    "now" := clock_timestamp();
    return next;
  end loop;
end $$;

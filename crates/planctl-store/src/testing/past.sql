-- A hundred thousand runs that have ended, of a thousand plans in ten workspaces, with what runs leave behind; and work that
-- waits on another host.
insert into workspaces (host, path) select 'host-a', '/w' || n from generate_series(1, 10) n;
insert into graphs (digest, body) values ('g', '{}');
insert into plans (workspace, path, status, digest)
  select 1 + n % 10, 'plan-' || n || '.md', 'done', 'd' from generate_series(1, 1000) n;
insert into revisions (plan, digest, source, graph) select id, 'd', '', 'g' from plans;
insert into plan_transitions (plan, from_status, to_status, by, why, digest)
  select 1 + n % 1000, 'draft', 'verified', 'ann', '', 'd' from generate_series(1, 20000) n;
insert into approvals (workspace, plan, digest, config_digest, config, protected, by, nonce)
  select p.workspace, p.id, 'd', 'c', '{}', '{}', 'ann', gen_random_uuid() from plans p, generate_series(1, 20);
insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, head, seq, chain, created_at,
    started_at, ended_at)
  select run_id(n), p.id, p.workspace, 'plan-' || p.id, n / 1000, 'plan-' || p.id || '-' || n / 1000, 'd', 'g', '{}', 'ended',
    '{}', 3, sha256('x'), now(), now(), now()
  from generate_series(1, 100000) n join plans p on p.id = 1 + n % 1000;
insert into nodes (run, node, state, record) select run_id(n), '1', 'passed', '{}' from generate_series(1, 100000) n;
insert into history (run, seq, at, kind, name, cause, node, visit, attempt, item, generation, command, body, hash)
  select run_id(n), s, now(), case when s = 1 then 'input' else 'fact' end, 'harness.evaluated', 'x', s::text, 1, 1,
    n || '.' || s, 1, gen_random_uuid(), '{}'::json, sha256('x')
  from generate_series(1, 10000) n, generate_series(1, 3) s
  union all select run_id(50000), s, now(), case when s % 6 = 1 then 'input' else 'fact' end, 'agent.reported', 'x',
    (s / 6)::text, 1, 1, 'i' || s / 6, 1, gen_random_uuid(), '{}'::json, sha256('x') from generate_series(1, 30000) s;
insert into refusals (run, name, reason, body) select run_id(n), 'x', '', '{}' from generate_series(1, 20000) n;
insert into asks (item, run, node, visit, attempt, work, created_at, closed_at)
  select 'a' || n, run_id(n), '1', 1, 1, '{}', now(), now() from generate_series(1, 100000) n;
insert into commands (key, run, body_hash, seq, at)
  select 'k' || n, run_id(n), '', 1, now() from generate_series(1, 20000) n;
insert into requests (principal, key, route, body_hash, call, status)
  select 'ann', 'k' || n, 'POST /', '', gen_random_uuid(), 200 from generate_series(1, 20000) n;
insert into outputs (digest, bytes) select 'o' || n, '' from generate_series(1, 20000) n;
insert into run_settings (run, number, seq, chain, digest, hash)
  select run_id(n), 1, 1, sha256('x'), sha256('x'), sha256('x') from generate_series(1, 100000) n;
insert into sub_plans (run, parent, item, place, depth)
  select run_id(n), run_id(n + 1), 's' || n, '/', 1 from generate_series(1, 20000) n;
insert into worktrees (run, root, path, branch, base, made_at, left_behind, seen_seq, removed_at)
  select run_id(n), '/', '/', 'b', 'c', now(), 0, 3, now() from generate_series(30000, 50000) n;
insert into tokens (id, name, scope, roles, hash)
  select 't' || n, 'ann', 'read', '{}', sha256(n::text::bytea) from generate_series(1, 500) n;
insert into items (id, run, node, visit, attempt, lane, target, state, work, available_at, due_at, span_micros, generation,
    created_at, home)
  select 'i' || n, run_id(n), '1', 1, 1, 'agent', 'coder', 'ready', '{}', now(), now(), 1, 0, now(), 'host-b'
  from generate_series(1, 20000) n;
insert into topics (name, newest, posted_at) select 't' || n, 100, now() from generate_series(1, 100) n;
insert into notes (topic, number, by, body, call)
  select t.id, n, 'ann', '', gen_random_uuid() from topics t, generate_series(1, 100) n;

-- What the roles of planctl's own may do, where the server has them: the private Postgres always, another one where its
-- administrator made them. The role that applies this owns the tables; the daemon works as planctl_app.

do $$
declare
  place text := current_schema();
begin
  if exists (select from pg_roles where rolname = 'planctl_app') then
    execute format('grant usage on schema %I to planctl_app', place);
    execute format('grant select, insert, update on all tables in schema %I to planctl_app', place);
    -- Verdicts, history, what was sealed, and the texts and outputs that they name are only ever added to.
    revoke update on history, refusals, run_settings, plan_transitions, graphs, outputs, notes from planctl_app;
    revoke insert, update on planctl_migrations from planctl_app;
    grant delete on items, timers, locks, workers, requests, commands to planctl_app;
    execute format('alter default privileges in schema %I grant select, insert, update, delete on tables to planctl_app', place);
  end if;
  if exists (select from pg_roles where rolname = 'planctl_read') then
    execute format('grant usage on schema %I to planctl_read', place);
    execute format('grant select on all tables in schema %I to planctl_read', place);
    execute format('alter default privileges in schema %I grant select on tables to planctl_read', place);
  end if;
end
$$;

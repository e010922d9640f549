-- Settings of runs that can't be changed unseen, and histories that are only added to.

-- The commands and settings of a run, each time a person approved them or took the run up with others. A row is chained to
-- the one before and to the line of history at which it was made, so that neither `update runs set settings` nor a changed
-- row here goes unnoticed: no work is started by settings that differ, and `planctl audit` names them.
create table run_settings (
  run         uuid not null,
  number      bigint not null,
  -- The run's last line of history by then, and that line's hash.
  seq         bigint not null,
  chain       bytea not null,
  approval    bigint,
  digest      bytea not null,
  hash        bytea not null,
  at          timestamptz not null default clock_timestamp(),
  primary key (run, number)
);
create trigger settings_are_final before update or delete on run_settings
  for each row execute function planctl_history_is_final();

-- Seals the settings that a run has; its caller has just changed the run's row, and so holds it.
create function planctl_seal_settings(of uuid) returns void
language sql as $$
  with last as (select s.number, s.hash from run_settings s where s.run = of order by s.number desc limit 1),
  sealed as (
    select r.id, coalesce((select l.number from last l), 0) + 1 as number, r.seq, r.chain, r.approval,
           sha256(convert_to(r.settings::text, 'UTF8')) as digest, coalesce((select l.hash from last l), ''::bytea) as before
    from runs r where r.id = of)
  insert into run_settings (run, number, seq, chain, approval, digest, hash)
  select s.id, s.number, s.seq, s.chain, s.approval, s.digest,
         sha256(s.before || uuid_send(s.id) || int8send(s.number) || int8send(s.seq) || s.chain
                || int8send(coalesce(s.approval, 0)) || s.digest)
  from sealed s
$$;

-- Runs that were made before are taken as they are found.
select planctl_seal_settings(id) from runs;

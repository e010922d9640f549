-- Failures of runs that a person has seen and leaves as they are. A run that is taken up again and fails anew is another failure.
create table acknowledgements (
  run         uuid not null references runs on delete cascade,
  ended_at    timestamptz not null,
  by          text not null,
  note        text,
  at          timestamptz not null default clock_timestamp(),
  primary key (run, ended_at)
);

-- Sums what all workspaces used today.
create index used_quarter on used (quarter);
-- Returns what runs of a workspace used today, or of all; a time zone that nobody knows is UTC.
create function planctl_spent_today_1(zone text, of_workspace bigint) returns table (tokens bigint, micro_usd bigint)
language plpgsql stable as $$
#variable_conflict use_column
declare
  here timestamp;
begin
  begin
    here := clock_timestamp() at time zone zone;
  exception when invalid_parameter_value then
    zone := 'UTC';
    here := clock_timestamp() at time zone zone;
  end;
  return query select coalesce(sum(u.tokens), 0)::bigint, coalesce(sum(u.micro_usd), 0)::bigint from used u
  where u.quarter >= date_trunc('day', here) at time zone zone and (of_workspace is null or u.workspace = of_workspace);
end $$;

-- When a process was last known to work on a run: on all runs of a host, as a daemon does, or on one. The time of a run's budget
-- counts no further than that.
create table attendance (
  host        text not null,
  -- The nil id stands for all runs of the host.
  run         uuid not null,
  at          timestamptz not null,
  primary key (host, run)
) with (fillfactor = 50);

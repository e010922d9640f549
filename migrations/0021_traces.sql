-- How far the traces of runs were sent to a collector. Spans are made from history; no transition writes here.

-- Which process of a host sends its traces, and until when it may; and since when traces are sent at all, so that the runs that
-- ended before are left alone.
create table traced_hosts (
  host        text primary key,
  holder      text not null,
  held_until  timestamptz not null,
  ended_at    timestamptz not null default clock_timestamp()
);

-- The last line of a run's history whose spans a collector has. It goes with its run.
create table traced_runs (
  run         uuid primary key references runs on delete cascade,
  seq         bigint not null
);

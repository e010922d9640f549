-- A process that leaves a run says when. Equal to `at` from then on, and until a process says again that it works.
alter table attendance add column left_at timestamptz;

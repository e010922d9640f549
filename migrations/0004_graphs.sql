-- Where runs work, and what graphs need.

-- A run that works apart has a git worktree of its own, so it waits for no other run.
alter table runs add column apart boolean not null default false;
drop index one_active_run_per_workspace;
create unique index one_active_run_per_workspace on runs (workspace) where active and not apart;

create table worktrees (
  run         uuid primary key,
  -- Its top, and the folder in it where steps work, which lies deeper where the workspace lies deeper in its checkout.
  root        text not null,
  path        text not null,
  branch      text not null,
  -- The commit that it begins with.
  base        text not null,
  -- Null until all its files are there; from then on it is never made again.
  made_at     timestamptz,
  -- Why it could not be made when that was tried last.
  trouble     text,
  -- How many changes of the workspace were committed nowhere and did not come along.
  left_behind int not null,
  -- What it held when the run ended: the commit of its branch, the changes that are in none, and how far the run was.
  result      text,
  uncommitted int,
  seen_seq    bigint,
  removed_at  timestamptz
);

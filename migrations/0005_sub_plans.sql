-- Plans within plans.

-- A run that carries out a node of another one's plan. It works under that one's claim of the workspace, so it waits for
-- no other run.
create table sub_plans (
  run     uuid primary key,
  parent  uuid not null,
  -- The item of the parent that waits for its end.
  item    text not null unique,
  -- Where it works: the workspace, the parent's worktree, or that of a branch.
  place   text not null,
  -- How many plans are around it.
  depth   int not null
);
create index sub_plans_parent on sub_plans (parent);

-- Plans, their revisions and who approved what.

create table workspaces (
  id          bigint generated always as identity primary key,
  host        text not null,
  path        text not null,
  created_at  timestamptz not null default clock_timestamp(),
  unique (host, path)
);

-- A compiled graph is immutable and shared; it is cached by its digest.
create table graphs (
  digest      text primary key,
  body        json not null,
  created_at  timestamptz not null default clock_timestamp()
);

create table plans (
  id          bigint generated always as identity primary key,
  workspace   bigint not null references workspaces,
  path        text not null,
  status      text not null default 'draft'
              check (status in ('draft', 'verified', 'approved', 'in-progress', 'done', 'failed')),
  digest      text not null,
  created_at  timestamptz not null default clock_timestamp(),
  updated_at  timestamptz not null default clock_timestamp(),
  unique (workspace, path)
);

create table revisions (
  plan        bigint not null references plans,
  digest      text not null,
  source      text not null,
  graph       text not null references graphs,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (plan, digest)
);

create table plan_transitions (
  id          bigint generated always as identity primary key,
  plan        bigint not null references plans,
  from_status text not null,
  to_status   text not null,
  by          text not null,
  why         text not null,
  digest      text not null,
  at          timestamptz not null default clock_timestamp()
);
create index plan_transitions_plan on plan_transitions (plan, id);

-- An approval is of (digest, configuration, workspace) and serves until it is voided.
create table approvals (
  id            bigint generated always as identity primary key,
  workspace     bigint not null references workspaces,
  plan          bigint not null references plans,
  digest        text not null,
  config_digest text not null,
  config        json not null,
  protected     json not null,
  by            text not null,
  note          text,
  nonce         uuid not null unique,
  at            timestamptz not null default clock_timestamp(),
  voided_at     timestamptz,
  voided_why    text
);
create index approvals_plan on approvals (plan, digest, id);

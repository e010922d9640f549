-- Which entry of the library a revision was made of, and which plan is to follow its runs. A revision that has neither has no row.
create table library_places (
  plan    bigint not null,
  digest  text not null,
  entry   text,
  next    text,
  primary key (plan, digest)
);
create index library_places_with_next on library_places (plan, digest) where next is not null;

-- The runs that were followed: each is looked at once, whether a run was made or why none was.
create table follow_ups (
  run      uuid primary key,
  made     uuid,
  trouble  text,
  at       timestamptz not null default clock_timestamp()
);

-- The number in a run's name counts within its workspace: the first run of `fix.md` is `fix-1` in every project. The
-- constraint keeps its name, by which daemons of earlier versions know that a number was taken.
alter table runs drop constraint runs_stem_number_key;
alter table runs add constraint runs_stem_number_key unique (workspace, stem, number);

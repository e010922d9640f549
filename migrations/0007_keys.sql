-- What requests did, and what is used under a lease.

-- A request keeps its id however often it is sent and whoever works on it. What it does is recorded under that id in the
-- transaction that does it: new runs and decisions in `commands`, notes in `notes.call`, tokens in `tokens.request`.
alter table requests add column id uuid not null default gen_random_uuid();
-- Null where nobody works on it.
alter table requests alter column call drop not null;

alter table tokens add column request uuid unique;

-- Secrets of tokens were kept with what their makers were answered.
update requests set status = 409, answer = convert_to('{"type":"/problems/conflict","status":409,"title":"the state does '
  || 'not allow it","detail":"a token was made by this request before; its secret was shown once"}', 'UTF8')
where route = 'POST /v1/tokens' and status between 200 and 299;

-- What the holder of an item says it has used so far; of this generation of its lease.
alter table items add column used json;

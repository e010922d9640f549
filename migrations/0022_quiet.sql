-- Quiet hours of channels: deliveries that are held until they are over, and are sent as one then.
alter table deliveries add column held boolean not null default false;

-- Returns until when a message is held, at a time of day between these two where the zone says so; null where it is not quiet,
-- or where the zone is none.
create function planctl_quiet_until_1(zone text, begins time, ends time) returns timestamptz
language plpgsql volatile as $$
declare
  here timestamp;
begin
  here := clock_timestamp() at time zone zone;
  if begins < ends and here::time >= begins and here::time < ends or begins > ends and here::time < ends then
    return (here::date + ends) at time zone zone;
  elsif begins > ends and here::time >= begins then
    return (here::date + 1 + ends) at time zone zone;
  end if;
  return null;
exception when invalid_parameter_value then
  return null;
end $$;

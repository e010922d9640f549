-- Finds the decisions of people and rules, of all runs by time.
create index history_of_people on history (at desc) where kind = 'input' and name like 'human.%';

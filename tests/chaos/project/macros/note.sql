{#-- Writes of a run-operation: rows that are there twice, and a number that is too high, where one of them is done again. --#}
{% macro note(round) %}
  {% do run_query("insert into main.audit values ('operation', " ~ round ~ ")") %}
  {% do run_query("update main.tally set times = times + 1 where name = 'run start'") %}
{% endmacro %}

{#-- A strategy of two statements, each a commit: the first takes away more than the second gives back. --#}
{% macro get_incremental_two_steps_sql(arg_dict) %}
  delete from {{ arg_dict['target_relation'] }} where part in (select part from {{ arg_dict['temp_relation'] }});
  insert into {{ arg_dict['target_relation'] }} select * from {{ arg_dict['temp_relation'] }}
{% endmacro %}

{#-- Each strategy is one statement that holds the model's query, so one commit. --#}

{% macro silt__get_incremental_default_sql(arg_dict) %}
  {%- if arg_dict['unique_key'] -%}
    {{ return(get_incremental_merge_sql(arg_dict)) }}
  {%- endif -%}
  {{ return(get_incremental_append_sql(arg_dict)) }}
{% endmacro %}


{% macro silt__get_incremental_append_sql(arg_dict) -%}
  {{ silt_insert_into(arg_dict) }}
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{% macro silt__get_incremental_merge_sql(arg_dict) -%}
  {%- if not arg_dict['unique_key'] -%}
    {%- do exceptions.raise_compiler_error(
      "The incremental strategy 'merge' needs a `unique_key`: name the column or columns that identify a row of "
      ~ arg_dict['target_relation'] ~ ", or use the strategy 'append'"
    ) -%}
  {%- endif -%}
  {%- set columns = arg_dict['dest_columns'] -%}
  {%- set update_columns = get_merge_update_columns(
    silt_list(config.get('merge_update_columns')), silt_list(config.get('merge_exclude_columns')), columns
  ) -%}
  {%- set conditions = silt_list(arg_dict['incremental_predicates']) -%}
  {%- for key in silt_list(arg_dict['unique_key']) -%}
    {%- do conditions.append(
      get_merge_unique_key_match('DBT_INTERNAL_SOURCE.' ~ key, 'DBT_INTERNAL_DEST.' ~ key) | trim
    ) -%}
  {%- endfor -%}
  merge {{ 'with schema evolution ' if arg_dict['evolve'] }}into {{ arg_dict['target_relation'] }} as DBT_INTERNAL_DEST
  using (
  {{ arg_dict['query'] }}
  ) as DBT_INTERNAL_SOURCE
  on ({{ conditions | join(') and (') }})
  {%- if update_columns %}
  when matched then update set
  {%- for column in update_columns %}
    {{ column }} = DBT_INTERNAL_SOURCE.{{ column }}{{ ',' if not loop.last }}
  {%- endfor %}
  {%- endif %}
  when not matched then insert ({{ columns | map(attribute='quoted') | join(', ') }})
    values ({% for column in columns %}DBT_INTERNAL_SOURCE.{{ column.quoted }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}


{#-- Null-safe: a key that is null in one of its columns still names one row, which a rerun updates and does not add again. --#}
{% macro silt__get_merge_unique_key_match(source_unique_key, target_unique_key) -%}
  {{ return(source_unique_key ~ ' <=> ' ~ target_unique_key) }}
{%- endmacro %}


{#-- Removes the rows of every key that the query gives, and adds the query's rows. --#}
{% macro silt__get_incremental_delete_insert_sql(arg_dict) -%}
  {%- set keys = silt_list(arg_dict['unique_key']) -%}
  {%- set predicates = silt_list(arg_dict['incremental_predicates']) -%}
  {%- if not keys -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- elif predicates -%}
    {{ return(silt_delete_insert_where(arg_dict, keys, predicates)) }}
  {%- endif -%}
  {{ silt_insert_into(arg_dict) }}
  replace using ({{ keys | join(', ') }})
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{#-- The same, but only rows that the predicates hold for are removed. Each row of the query is there twice: once to remove the
     rows of its key, once to be added; its columns are those of `dbt_row`, so that a predicate's column is the table's. --#}
{% macro silt_delete_insert_where(arg_dict, keys, predicates) -%}
  {%- set columns = arg_dict['dest_columns'] -%}
  merge {{ 'with schema evolution ' if arg_dict['evolve'] }}into {{ arg_dict['target_relation'] }} as DBT_INTERNAL_DEST
  using (
  select explode(array('delete', 'insert')) as dbt_change, struct(*) as dbt_row
  from (
  {{ arg_dict['query'] }}
  )
  ) as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.dbt_change = 'delete'
  {%- for key in keys %}
    and DBT_INTERNAL_DEST.{{ key }} = DBT_INTERNAL_SOURCE.dbt_row.{{ key }}
  {%- endfor %}
    and ({{ predicates | join(') and (') }})
  when matched then delete
  when not matched and DBT_INTERNAL_SOURCE.dbt_change = 'insert'
    then insert ({{ columns | map(attribute='quoted') | join(', ') }})
    values ({% for column in columns %}DBT_INTERNAL_SOURCE.dbt_row.{{ column.quoted }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}


{#-- The partitions that the query has rows of are replaced, that of null too; a table without partitions is replaced whole. --#}
{% macro silt__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {%- do run_query('set spark.sql.sources.partitionOverwriteMode = dynamic') -%}
  insert {{ 'with schema evolution ' if arg_dict['evolve'] }}overwrite {{ arg_dict['target_relation'] }} by name
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{#-- The batch's window is replaced. dbt's own filter on the refs has cut the query to it. --#}
{% macro silt__get_incremental_microbatch_sql(arg_dict) -%}
  {%- set batch = model.batch -%}
  {%- set event_time = config.get('event_time') -%}
  {{ silt_insert_into(arg_dict) }}
  replace where {{ event_time }} >= timestamp '{{ batch.event_time_start }}'
    and {{ event_time }} < timestamp '{{ batch.event_time_end }}'
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{% macro silt_insert_into(arg_dict, alias='') -%}
  insert {{ 'with schema evolution ' if arg_dict['evolve'] }}into {{ arg_dict['target_relation'] }} {{ alias }}by name
{%- endmacro %}


{% macro silt_rows(arg_dict) -%}
  select {{ arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') }}
  from (
  {{ arg_dict['query'] }}
  )
{%- endmacro %}


{#-- A configuration that may be one text, several, or none, as a new list. --#}
{% macro silt_list(value) %}
  {%- if value is none or value is undefined -%}
    {{ return([]) }}
  {%- endif -%}
  {{ return([value] if value is string else value | list) }}
{% endmacro %}


{#-- dbt-spark's own gives none for "all columns". --#}
{% macro silt__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns) %}
  {{ return(default__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns)) }}
{% endmacro %}

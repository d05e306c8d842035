{#-- The incremental strategies. Each is one statement that contains the model's query, and so one commit. --#}

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


{#-- Without a key no row matches, so all rows of the model are inserted. --#}
{% macro silt__get_incremental_merge_sql(arg_dict) -%}
  {%- set columns = arg_dict['dest_columns'] -%}
  {%- set target_alias = config.get('target_alias') or 'DBT_INTERNAL_DEST' -%}
  {%- set source_alias = config.get('source_alias') or 'DBT_INTERNAL_SOURCE' -%}
  {%- set conditions = silt_list(arg_dict['incremental_predicates']) -%}
  {%- set using_columns = silt_list(config.get('merge_on_using_columns')) -%}
  {%- set setting = 'merge_on_using_columns' if using_columns else 'unique_key' -%}
  {%- for key in using_columns or silt_list(arg_dict['unique_key']) -%}
    {%- do conditions.append(get_merge_unique_key_match(
      adapter.qualified(key, columns, source_alias, setting), adapter.qualified(key, columns, target_alias, setting)
    ) | trim) -%}
  {%- else -%}
    {%- do conditions.append('false') -%}
  {%- endfor -%}
  {%- set warning = adapter.exclusion_warning(model['config'], columns) -%}
  {%- if warning -%}
    {%- do exceptions.warn(warning) -%}
  {%- endif -%}
  {%- set clauses = adapter.merge_clauses(model['config'], columns, silt_query(arg_dict), target_alias, source_alias) -%}
  {%- set skips = config.get('skip_equal_rows') | string | lower == 'true' %}
  merge {{ 'with schema evolution ' if arg_dict['evolve'] }}{{ 'skip equal rows ' if skips }}into {{ arg_dict['target_relation'] }} as {{ target_alias }}
  using (
  {{ silt_query(arg_dict) }}
  ) as {{ source_alias }}
  on ({{ conditions | join(') and (') }})
  {%- for clause in clauses %}
  when {{ clause.match }}{{ ' and ' ~ clause.condition if clause.condition }}
    then {{ clause.action }}
  {%- endfor %}
{%- endmacro %}


{#-- Null-safe: a key with a null in one of its columns still identifies a row, so a rerun updates the row instead of inserting it
     again. --#}
{% macro silt__get_merge_unique_key_match(source_unique_key, target_unique_key) -%}
  {{ return(source_unique_key ~ ' <=> ' ~ target_unique_key) }}
{%- endmacro %}


{#-- Deletes the rows of every key that the query returns, with null as a value, and inserts the query's rows. Predicates apply to
     the table's rows: rows of a key for which they are not true are kept. --#}
{% macro silt__get_incremental_delete_insert_sql(arg_dict) -%}
  {%- set keys = silt_list(arg_dict['unique_key']) -%}
  {%- if not keys -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
  {%- set target_columns = adapter.get_columns_in_relation(arg_dict['target_relation']) -%}
  {%- set conditions = [] -%}
  {%- for predicate in silt_list(arg_dict['incremental_predicates']) -%}
    {%- do conditions.append('(' ~ adapter.qualify_condition(predicate, target_columns, 'DBT_INTERNAL_DEST') ~ ')') -%}
  {%- endfor -%}
  {{ return(silt_replace_equal(arg_dict, keys, 'unique_key', conditions)) }}
{%- endmacro %}


{#-- Replaces the rows that equal a row of the query in the configured columns or expressions. --#}
{% macro silt_replace_equal(arg_dict, texts, setting, conditions=[]) -%}
  {%- set columns = arg_dict['dest_columns'] -%}
  {%- set equal = [] -%}
  {%- for text in texts -%}
    {%- do equal.append(
      adapter.qualified(text, columns, 'DBT_INTERNAL_DEST', setting) ~ ' <=> '
      ~ adapter.qualified(text, columns, 'DBT_INTERNAL_SOURCE', setting)
    ) -%}
  {%- endfor -%}
  {{ silt_insert_into(arg_dict, 'as DBT_INTERNAL_DEST ') }}
  replace on {{ (equal + conditions) | join(' and ') }} (
  {{ silt_rows(arg_dict) }}
  ) as DBT_INTERNAL_SOURCE
{%- endmacro %}


{#-- Replaces the partitions, including the null partition, of which the query has rows. The model's columns determine the
     partitions, not the session's overwrite mode; without columns, the whole table is replaced. --#}
{% macro silt__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {%- set partition_by = adapter.partitioning(config.get('partition_by')).replaced_by() | list -%}
  {%- set columns = partition_by or silt_list(config.get('liquid_clustered_by')) -%}
  {%- if columns -%}
    {{ return(silt_replace_equal(arg_dict, columns, 'partition_by' if partition_by else 'liquid_clustered_by')) }}
  {%- endif -%}
  insert {{ 'with schema evolution ' if arg_dict['evolve'] }}overwrite {{ arg_dict['target_relation'] }} by name
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{#-- Replaces the rows for which the predicates are true. A new row for which they are not true is an error. --#}
{% macro get_incremental_replace_where_sql(arg_dict) %}
  {{ return(adapter.dispatch('get_incremental_replace_where_sql', 'dbt')(arg_dict)) }}
{% endmacro %}


{% macro silt__get_incremental_replace_where_sql(arg_dict) -%}
  {%- set predicates = silt_list(arg_dict['incremental_predicates']) -%}
  {%- if not predicates -%}
    {%- do exceptions.raise_compiler_error(
      "The incremental strategy 'replace_where' needs `incremental_predicates`: the condition that is true for the rows to replace"
    ) -%}
  {%- endif -%}
  {{ silt_insert_into(arg_dict) }}
  replace where ({{ predicates | join(') and (') }})
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{#-- Replaces the rows of the keys that changed in some input of the query since the last run, or all rows; the engine decides
     (decision 0089). The statement contains the query as the first run writes it, because another query replaces all rows. --#}
{% macro get_incremental_changed_keys_sql(arg_dict) %}
  {{ return(adapter.dispatch('get_incremental_changed_keys_sql', 'dbt')(arg_dict)) }}
{% endmacro %}


{% macro silt__get_incremental_changed_keys_sql(arg_dict) -%}
  {%- if flags.EMPTY -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
  {%- set query = silt_query(arg_dict) -%}
  {%- set wanted = arg_dict['dest_columns'] | map(attribute='name') | map('lower') | sort -%}
  {%- set given = adapter.get_column_schema_from_query(query) | map(attribute='name') | map('lower') | sort -%}
  {{ silt_insert_into(arg_dict) }}
  replace {{ adapter.changed_keys_clause(model) }}
  {% if config.get('contract').enforced -%}
    {{ get_select_subquery(query) }}
  {%- elif wanted == given -%}
    {{ query }}
  {%- else -%}
    {{ silt_rows(arg_dict) }}
  {%- endif -%}
{%- endmacro %}


{#-- Replaces the rows in the batch's window. dbt's filter on the refs already limits the query to the window. --#}
{% macro silt__get_incremental_microbatch_sql(arg_dict) -%}
  {%- set window = adapter.batch_window(model, arg_dict['dest_columns'], silt_query(arg_dict)) -%}
  {{ silt_insert_into(arg_dict) }}
  replace where {{ window }}
  {%- for predicate in silt_list(arg_dict['incremental_predicates']) %}
    and ({{ predicate }})
  {%- endfor %}
  {{ silt_rows(arg_dict) }}
{%- endmacro %}


{% macro silt_insert_into(arg_dict, alias='') -%}
  insert {{ 'with schema evolution ' if arg_dict['evolve'] }}into {{ arg_dict['target_relation'] }} {{ alias }}by name
{%- endmacro %}


{% macro silt_rows(arg_dict) -%}
  select {{ arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') }}
  from (
  {{ silt_query(arg_dict) }}
  )
{%- endmacro %}


{#-- The model's query. A project's own strategy that calls one of these macros may only pass its temporary view. --#}
{% macro silt_query(arg_dict) %}
  {{ return(arg_dict['query'] or 'select * from ' ~ arg_dict['temp_relation']) }}
{% endmacro %}


{#-- Returns a config that is a string, a list, or unset as a new list. --#}
{% macro silt_list(value) %}
  {%- if value is none or value is undefined -%}
    {{ return([]) }}
  {%- endif -%}
  {{ return([value] if value is string else value | list) }}
{% endmacro %}


{#-- Like dbt-spark's macro, which returns none for "all columns". --#}
{% macro silt__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns) %}
  {{ return(default__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns)) }}
{% endmacro %}

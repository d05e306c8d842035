{#-- The first rows of a snapshot: the query's, in their order, if no key occurs twice. Repeated keys are looked for separately,
     because a window would shuffle all rows and lose the order that they are stored in. --#}
{% macro silt__build_snapshot_table(strategy, sql) %}
  {%- set rows -%}
    select /*+ broadcast(doubles) */ snapshot_query.*
    from (
    {{ sql }}
    ) snapshot_query
    left outer join (
      select {{ silt_snapshot_key(strategy) }} as dbt_unique_key, count(*) as dbt_key_rows
      from (
      {{ sql }}
      )
      group by 1
      having count(*) > 1
    ) doubles
      on {{ silt_snapshot_key(strategy) }} = dbt_unique_key
    where if(dbt_unique_key is null, true, {{ silt_snapshot_key_error() }})
  {%- endset -%}
  {{ return(default__build_snapshot_table(strategy, rows)) }}
{% endmacro %}


{#-- What is new, changed and gone, by one join that reads the query and the table's current rows once each; dbt's own reads
     both once for each kind of change. An `update` or a `delete` closes the current row of its key, an `insert` is a new row.
     No new row gets the id of an earlier one: where it is not later than the row that it follows (it comes back as it was, or
     `updated_at` stands still), its id is made with the moment of the snapshot. --#}
{% macro silt__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set marks = strategy.hard_deletes == 'new_record' -%}
  {%- set now = silt_snapshot_time(strategy, target_relation) -%}
  {%- set is_new = 'snapshotted_data.dbt_unique_key is null' -%}
  {%- set is_gone = 'source_data.dbt_unique_key is null' -%}
  {%- set is_marked = 'snapshotted_data.' ~ columns.dbt_is_deleted ~ " = 'True'" -%}
  {%- set updated_at = 'source_data.' ~ columns.dbt_valid_from -%}
  {%- set is_later = 'coalesce(snapshotted_data.' ~ columns.dbt_valid_from ~ ' < ' ~ updated_at ~ ', false)' -%}
  {%- set changed_at = 'if(' ~ is_gone ~ ', ' ~ now ~ ', ' ~ updated_at ~ ')' if marks else updated_at -%}
  {%- set comes_back = is_marked ~ ' and not ' ~ is_later -%}
  {%- set starts_at = 'if(' ~ comes_back ~ ', ' ~ now ~ ', ' ~ changed_at ~ ')' if marks else updated_at -%}
  {%- set row_changed = strategy.row_changed -%}
  {%- if config.get('strategy') == 'timestamp' -%}
    {%- set had_no_time = 'snapshotted_data.' ~ columns.dbt_valid_from ~ ' is null' -%}
    {%- set row_changed = row_changed ~ ' or (' ~ had_no_time ~ ' and ' ~ updated_at ~ ' is not null)' -%}
  {%- endif -%}
  with source_data as (
    select
      *,
      {{ strategy.updated_at }} as {{ columns.dbt_updated_at }},
      {{ strategy.updated_at }} as {{ columns.dbt_valid_from }},
      {{ get_dbt_valid_to_current(strategy, columns) | trim }},
      {{ strategy.scd_id }} as {{ columns.dbt_scd_id }}
    from (
    {{ silt_snapshot_query(strategy, source_sql) }}
    )
  ),

  snapshotted_data as (
    select *, {{ silt_snapshot_key(strategy) }} as dbt_unique_key
    from {{ target_relation }}
    where {{ silt_snapshot_is_current(columns.dbt_valid_to) }}
  )

  select
    dbt_change_type,
    {{ silt_snapshot_columns(source_sql, target_relation, is_gone if marks) }}
    {%- if marks %}
    if({{ is_gone }}, 'True', 'False') as {{ columns.dbt_is_deleted }},
    {%- endif %}
    {{ changed_at }} as {{ columns.dbt_updated_at }},
    {{ starts_at }} as {{ columns.dbt_valid_from }},
    case dbt_change_type
      when 'update' then {{ starts_at }}
      when 'delete' then {{ now }}
      else coalesce(source_data.{{ columns.dbt_valid_to }}, snapshotted_data.{{ columns.dbt_valid_to }})
    end as {{ columns.dbt_valid_to }},
    case
      when dbt_change_type <> 'insert' then snapshotted_data.{{ columns.dbt_scd_id }}
      when {{ is_gone }} then {{ snapshot_hash_arguments(['snapshotted_data.' ~ columns.dbt_scd_id, now]) }}
      when {{ is_new }} or {{ is_later }} then source_data.{{ columns.dbt_scd_id }}
      else {{ snapshot_hash_arguments(['source_data.' ~ columns.dbt_scd_id, now]) }}
    end as {{ columns.dbt_scd_id }}
  from source_data
  {{ 'left' if strategy.hard_deletes == 'ignore' else 'full' }} outer join snapshotted_data
    on source_data.dbt_unique_key = snapshotted_data.dbt_unique_key
  lateral view explode(case
    when {{ is_new }} then array('insert')
    {%- if marks %}
    when {{ is_gone }} then if({{ is_marked }}, null, array('delete', 'insert'))
    when {{ is_marked }} then array('update', 'insert')
    {%- elif strategy.hard_deletes == 'invalidate' %}
    when {{ is_gone }} then array('delete')
    {%- endif %}
    when {{ row_changed }} then array('update', 'insert')
  end) changes as dbt_change_type
{%- endmacro %}


{#-- A row that was closed when it went, and comes back with the `updated_at` that it had, starts again now: dbt's own would
     give it the id of the closed row, and never insert it. --#}
{% macro silt_snapshot_starting_again(strategy, staging, target_relation) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set now = silt_snapshot_time(strategy, target_relation) -%}
  select
    changes.* except ({{ columns.dbt_valid_from }}, {{ columns.dbt_scd_id }}),
    if(dbt_closed_id is null, {{ columns.dbt_valid_from }}, {{ now }}) as {{ columns.dbt_valid_from }},
    case
      when dbt_closed_id is null then {{ columns.dbt_scd_id }}
      else {{ snapshot_hash_arguments([columns.dbt_scd_id, now]) }}
    end as {{ columns.dbt_scd_id }}
  from (
  {{ staging }}
  ) changes
  left outer join (
    select distinct {{ columns.dbt_scd_id }} as dbt_closed_id
    from {{ target_relation }}
    where not {{ silt_snapshot_is_current(columns.dbt_valid_to) }}
  )
    on dbt_change_type = 'insert' and {{ columns.dbt_scd_id }} = dbt_closed_id
{%- endmacro %}


{#-- The query's rows with their key; two rows with one key are an error, because only one of them could be current. A key is a
     struct, which equals another if their members do or are both null. --#}
{% macro silt_snapshot_query(strategy, sql) -%}
  select *
  from (
    select *, count(*) over (partition by dbt_unique_key) as dbt_key_rows
    from (
      select *, {{ silt_snapshot_key(strategy) }} as dbt_unique_key
      from (
      {{ sql }}
      )
    )
  )
  where if(dbt_key_rows = 1, true, {{ silt_snapshot_key_error() }})
{%- endmacro %}


{% macro silt_snapshot_key_error() -%}
  raise_error(concat(
    dbt_key_rows, ' rows of the query of {{ model.name }} have the unique key ',
    to_json(dbt_unique_key, map('ignoreNullFields', 'false')),
    '. Nothing was written. Let the query give one row for each key, or add to unique_key what tells them apart.'
  ))
{%- endmacro %}


{#-- A key that cannot be null is made one that can, as the table's is: else Spark converts the query's key for the join, and
     shuffles its rows a second time. --#}
{% macro silt_snapshot_key(strategy) -%}
  named_struct(
    {%- for key in silt_list(strategy.unique_key) -%}
      {{ adapter.string_literal(key) }}, if(true, {{ key }}, null){{ ', ' if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro %}


{#-- The moment of the snapshot, in the type of the table's own moments. --#}
{% macro silt_snapshot_time(strategy, target_relation) %}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set now = snapshot_get_time() | trim -%}
  {%- set name = columns.dbt_valid_from | lower -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) if column.name | lower == name -%}
    {%- if column.dtype in ['date', 'timestamp_ntz', 'string'] -%}
      {%- set now = 'cast(' ~ now ~ ' as ' ~ column.dtype ~ ')' -%}
      {{ return(now) }}
    {%- elif column.dtype != 'timestamp' and strategy.hard_deletes != 'ignore' -%}
      {%- do exceptions.raise_compiler_error(
        "`hard_deletes: " ~ strategy.hard_deletes ~ "` writes when a row was first missing, and `updated_at` of " ~ target_relation
        ~ " is no time but " ~ column.dtype ~ ": let `updated_at` name a time, or set `hard_deletes: ignore`"
      ) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(now) }}
{% endmacro %}


{#-- The query's columns; of a row that is gone, where that matters, as the table has them. --#}
{% macro silt_snapshot_columns(source_sql, target_relation, is_gone) -%}
  {%- set stored = {} -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) if is_gone -%}
    {%- do stored.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- for column in adapter.get_column_schema_from_query(source_sql) -%}
    {%- set before = stored.get(column.name | lower) -%}
    {%- if before -%}
      {%- set value = 'snapshotted_data.' ~ before.quoted -%}
      {%- if before.dtype != column.dtype -%}
        {%- set value = 'cast(' ~ value ~ ' as ' ~ column.dtype ~ ')' -%}
      {%- endif -%}
      if({{ is_gone }}, {{ value }}, source_data.{{ column.quoted }}) as {{ column.quoted }},
    {%- else -%}
      source_data.{{ column.quoted }},
    {%- endif -%}
    {{ '\n    ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{#-- In place of dbt's own, which takes a column that is spelled in another case for a new one, and cannot compare maps. --#}
{% macro snapshot_check_strategy(node, snapshotted_rel, current_rel, model_config, target_exists) %}
  {%- set unique_key = config.get('unique_key') -%}
  {%- set updated_at = config.get('updated_at') or snapshot_get_time() -%}
  {%- set hard_deletes = adapter.get_hard_deletes_behavior(config) -%}
  {{ return({
    'unique_key': unique_key,
    'updated_at': updated_at,
    'row_changed': silt_snapshot_row_changed(node, snapshotted_rel, current_rel) if target_exists else 'false',
    'scd_id': snapshot_hash_arguments(api.Relation.scd_args(unique_key, updated_at)),
    'invalidate_hard_deletes': hard_deletes == 'invalidate',
    'hard_deletes': hard_deletes
  }) }}
{% endmacro %}


{% macro silt_snapshot_row_changed(node, snapshotted_rel, current_rel) %}
  {%- set check_cols = config.get('check_cols') -%}
  {%- if check_cols == 'all' -%}
    {%- set compared = node['compiled_code'] -%}
  {%- elif check_cols is iterable and check_cols is not string and check_cols -%}
    {%- set compared = 'select ' ~ check_cols | join(', ') ~ ' from (\n' ~ node['compiled_code'] ~ '\n)' -%}
  {%- else -%}
    {%- do exceptions.raise_compiler_error(
      "Invalid value for 'check_cols': " ~ check_cols ~ ": give 'all' or a list of columns"
    ) -%}
  {%- endif -%}
  {{ return('(' ~ adapter.rows_differ(current_rel, compared, snapshotted_rel, this) ~ ')') }}
{% endmacro %}

{#-- The first rows of a snapshot: the query's rows, in their order, if no key occurs twice. A separate query looks for repeated
     keys, because a window would shuffle all rows and lose their order. --#}
{% macro silt__build_snapshot_table(strategy, sql) %}
  {%- set names = silt_snapshot_names() -%}
  {%- set key = silt_snapshot_key(strategy, adapter.get_column_schema_from_query(sql)) -%}
  select
    *,
    {{ strategy.scd_id }} as {{ names.dbt_scd_id }},
    {{ strategy.updated_at }} as {{ names.dbt_updated_at }},
    {{ strategy.updated_at }} as {{ names.dbt_valid_from }},
    {{ get_dbt_valid_to_current(strategy, names) | trim }}
    {%- if strategy.hard_deletes == 'new_record' %},
    'False' as {{ names.dbt_is_deleted }}
    {%- endif %}
  from (
    select /*+ broadcast(doubles) */ snapshot_query.*
    from (
    {{ sql }}
    ) snapshot_query
    left outer join (
      select {{ key }} as dbt_unique_key, count(*) as dbt_key_rows
      from (
      {{ sql }}
      )
      group by 1
      having count(*) > 1
    ) doubles
      on {{ key }} = dbt_unique_key
    where if(dbt_unique_key is null, true, {{ silt_snapshot_key_error() }})
  )
{% endmacro %}


{#-- Finds new, changed and missing rows with one join that reads the query and the table's current rows once each; dbt's own
     macro reads both once for each kind of change. An `update` or a `delete` closes the current row of its key, an `insert` is a
     new row. No row ends before it begins, or begins before the previous row of its key: if its `updated_at` is not later, it
     begins at the time of the snapshot. Its id then includes that time, so that it differs from the ids of earlier rows. A query with
     only a part of the rows (`--empty`, `--sample`) does not show which rows are missing. --#}
{% macro silt__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {%- set names = silt_snapshot_names() -%}
  {%- set query_columns = adapter.get_column_schema_from_query(source_sql) -%}
  {%- set table_columns = adapter.get_columns_in_relation(target_relation) -%}
  {%- set marks = strategy.hard_deletes == 'new_record' -%}
  {%- set closes = strategy.hard_deletes == 'invalidate' and config.get('updated_at') -%}
  {%- set now = silt_snapshot_time(strategy, target_relation) -%}
  {%- set is_new = 'snapshotted_data.dbt_unique_key is null' -%}
  {%- set is_gone = 'source_data.dbt_unique_key is null' -%}
  {%- set is_marked = 'snapshotted_data.' ~ names.dbt_is_deleted ~ " = 'True'" -%}
  {%- set before = 'snapshotted_data.' ~ names.dbt_valid_from -%}
  {%- set updated_at = 'source_data.' ~ names.dbt_valid_from -%}
  {%- set earliest = 'greatest(' ~ now ~ ', ' ~ before ~ ')' if now else before -%}
  {%- set starts_at -%}
    case
      when {{ is_gone }} then {{ earliest }}
      when {{ before }} is null or {{ before }} < {{ updated_at }} then coalesce({{ updated_at }}, {{ earliest }})
      else {{ earliest }}
    end
  {%- endset -%}
  {%- set starts_at = 'if(' ~ is_new ~ ', ' ~ updated_at ~ ', ' ~ starts_at ~ ')' -%}
  with source_data as (
    select
      *,
      {{ strategy.updated_at }} as {{ names.dbt_updated_at }},
      {{ strategy.updated_at }} as {{ names.dbt_valid_from }},
      {{ get_dbt_valid_to_current(strategy, names) | trim }},
      {{ strategy.scd_id }} as {{ names.dbt_scd_id }}
    from (
    {{ silt_snapshot_query(strategy, source_sql, query_columns) }}
    )
  ),

  snapshotted_data as (
    select *, count(*) over (partition by dbt_unique_key) as dbt_key_rows
    from (
      select *, {{ silt_snapshot_key(strategy, table_columns) }} as dbt_unique_key
      from {{ target_relation }}
      where {{ silt_snapshot_is_current(names.dbt_valid_to) }}
    )
  ),

  changes as (
    select
      dbt_change_type,
      {%- if closes %}
      if({{ is_new }}, source_data.dbt_unique_key, null) as dbt_new_key,
      {%- endif %}
      {{ silt_snapshot_columns(query_columns, table_columns, is_gone if marks) }}
      {%- if marks %}
      if({{ is_gone }}, 'True', 'False') as {{ names.dbt_is_deleted }},
      {%- endif %}
      {{ 'if(' ~ is_gone ~ ', ' ~ now ~ ', ' ~ updated_at ~ ')' if marks else updated_at }} as {{ names.dbt_updated_at }},
      {{ starts_at }} as {{ names.dbt_valid_from }},
      case
        when dbt_change_type = 'insert'
          then coalesce(source_data.{{ names.dbt_valid_to }}, snapshotted_data.{{ names.dbt_valid_to }})
        else {{ starts_at }}
      end as {{ names.dbt_valid_to }},
      case
        when dbt_change_type <> 'insert' then snapshotted_data.{{ names.dbt_scd_id }}
        when {{ is_gone }} then {{ silt_snapshot_new_id('snapshotted_data.' ~ names.dbt_scd_id) }}
        when {{ is_new }} then source_data.{{ names.dbt_scd_id }}
        when {{ before }} < {{ updated_at }} and source_data.{{ names.dbt_scd_id }} <> snapshotted_data.{{ names.dbt_scd_id }}
          then source_data.{{ names.dbt_scd_id }}
        else {{ silt_snapshot_new_id('source_data.' ~ names.dbt_scd_id) }}
      end as {{ names.dbt_scd_id }}
    from source_data
    {{ 'full' if strategy.hard_deletes != 'ignore' and adapter.reads_all_rows() else 'left' }} outer join snapshotted_data
      on source_data.dbt_unique_key = snapshotted_data.dbt_unique_key
    lateral view explode(case
      when {{ is_new }} then array('insert')
      {%- if marks %}
      when {{ is_gone }} then if({{ is_marked }}, null, array('delete', 'insert'))
      when {{ is_marked }} then array('update', 'insert')
      {%- elif strategy.hard_deletes == 'invalidate' %}
      when {{ is_gone }} then array('delete')
      {%- endif %}
      when {{ strategy.row_changed }}
        then if(snapshotted_data.dbt_key_rows = 1, array('update', 'insert'), {{ silt_snapshot_table_error() }})
    end) changes as dbt_change_type
  )

  {% if closes -%}
  {{ silt_snapshot_starting_again(strategy, target_relation, table_columns, now) }}
  {%- else -%}
  select * from changes
  {%- endif %}
{%- endmacro %}


{#-- If a key was closed when its row disappeared, it has no current row when it comes back: the new row follows the last closed
     row of the key, by the same rule. --#}
{% macro silt_snapshot_starting_again(strategy, target_relation, table_columns, now) -%}
  {%- set names = silt_snapshot_names() -%}
  {%- set follows = 'coalesce(dbt_closed_at < ' ~ names.dbt_valid_from ~ ', dbt_closed_key is null)' -%}
  select
    changes.* except (dbt_new_key, {{ names.dbt_valid_from }}, {{ names.dbt_scd_id }}),
    if({{ follows }}, {{ names.dbt_valid_from }}, greatest({{ now }}, dbt_closed_at)) as {{ names.dbt_valid_from }},
    if({{ follows }}, {{ names.dbt_scd_id }}, {{ silt_snapshot_new_id(names.dbt_scd_id) }}) as {{ names.dbt_scd_id }}
  from changes
  left outer join (
    select
      {{ silt_snapshot_key(strategy, table_columns) }} as dbt_closed_key,
      max(greatest({{ names.dbt_valid_from }}, {{ names.dbt_valid_to }})) as dbt_closed_at
    from {{ target_relation }}
    where not {{ silt_snapshot_is_current(names.dbt_valid_to) }}
    group by 1
  )
    on dbt_new_key = dbt_closed_key
{%- endmacro %}


{#-- A new unique id: it includes the time of the snapshot, which is exact even if the table's own times are dates. --#}
{% macro silt_snapshot_new_id(id) -%}
  {{ snapshot_hash_arguments([id, 'current_timestamp()']) }}
{%- endmacro %}


{#-- The names of dbt's own columns, in backquotes. --#}
{% macro silt_snapshot_names() %}
  {{ return(adapter.snapshot_names(config.get('snapshot_table_column_names') or get_snapshot_table_column_names())) }}
{% endmacro %}


{#-- The query's rows with their key. Two rows with the same key are an error, because only one row can be current. A key is a
     struct; two structs are equal if each pair of members is equal or both are null. --#}
{% macro silt_snapshot_query(strategy, sql, columns) -%}
  select *
  from (
    select *, count(*) over (partition by dbt_unique_key) as dbt_key_rows
    from (
      select *, {{ silt_snapshot_key(strategy, columns) }} as dbt_unique_key
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
    '. Change the query to return one row for each key, or add columns to unique_key that tell the rows apart.'
  ))
{%- endmacro %}


{#-- With several current rows of a key, as after a change of `unique_key` to fewer columns, one changed row of the query would close
     them all and be inserted once for each. --#}
{% macro silt_snapshot_table_error() -%}
  raise_error(concat(
    snapshotted_data.dbt_key_rows, {{ adapter.string_literal(' current rows of ' ~ this.schema ~ '.' ~ this.identifier ~ ' have the unique key ') }},
    to_json(snapshotted_data.dbt_unique_key, map('ignoreNullFields', 'false')),
    '. If the config unique_key has changed, set it back, or give the snapshot another alias, under which a new history begins.'
  ))
{%- endmacro %}


{#-- A key that cannot be null is made nullable, like the table's key. Otherwise Spark converts the query's key for the join, and
     shuffles its rows a second time. --#}
{% macro silt_snapshot_key(strategy, columns) -%}
  named_struct(
    {%- for key in silt_list(strategy.unique_key) -%}
      {{ adapter.string_literal(key) }}, if(true, {{ adapter.snapshot_expression(key, columns, 'unique_key') }}, null)
      {{- ', ' if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro %}


{#-- The time of the snapshot, in the type of the table's times, or none if that type is not a time. --#}
{% macro silt_snapshot_time(strategy, target_relation) %}
  {%- set names = silt_snapshot_names() -%}
  {%- set now = snapshot_get_time() | trim -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) if column.quoted | lower == names.dbt_valid_from | lower -%}
    {%- if column.dtype in ['date', 'timestamp_ntz', 'string'] -%}
      {{ return('cast(' ~ now ~ ' as ' ~ column.dtype ~ ')') }}
    {%- elif column.dtype != 'timestamp' and strategy.hard_deletes == 'ignore' -%}
      {{ return(none) }}
    {%- elif column.dtype != 'timestamp' -%}
      {%- do exceptions.raise_compiler_error(
        "`hard_deletes: " ~ strategy.hard_deletes ~ "` writes the time when a row was first missing, but `updated_at` of " ~ target_relation
        ~ " is of type " ~ column.dtype ~ ": set `updated_at` to a column with a time, or set `hard_deletes: ignore`"
      ) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(now) }}
{% endmacro %}


{#-- The query's columns. For a missing row, if `is_gone` is given, the table's values. --#}
{% macro silt_snapshot_columns(query_columns, table_columns, is_gone) -%}
  {%- set stored = {} -%}
  {%- for column in table_columns if is_gone -%}
    {%- do stored.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- for column in query_columns -%}
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
    {{ '\n      ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{#-- Replaces dbt's own macro, which compares the time of a change with the start of the current row. A row that has come back
     starts later than its `updated_at`, so changes in between would be lost. --#}
{% macro snapshot_timestamp_strategy(node, snapshotted_rel, current_rel, model_config, target_exists) %}
  {%- set name = silt_snapshot_names().dbt_updated_at -%}
  {%- set before, updated_at = snapshotted_rel ~ '.' ~ name, current_rel ~ '.' ~ name -%}
  {{ return(silt_snapshot_strategy(node, config.get('updated_at'),
    '(coalesce(' ~ before ~ ' < ' ~ updated_at ~ ', ' ~ before ~ ' is null and ' ~ updated_at ~ ' is not null))'
  )) }}
{% endmacro %}


{#-- Replaces dbt's own macro, which treats a column name in another case as a new column, and cannot compare maps. --#}
{% macro snapshot_check_strategy(node, snapshotted_rel, current_rel, model_config, target_exists) %}
  {{ return(silt_snapshot_strategy(
    node, config.get('updated_at'), silt_snapshot_row_changed(node, snapshotted_rel, current_rel, target_exists)
  )) }}
{% endmacro %}


{% macro silt_snapshot_strategy(node, updated_at, row_changed) %}
  {%- set columns = adapter.get_column_schema_from_query(node['compiled_code']) -%}
  {%- set hard_deletes = adapter.get_hard_deletes_behavior(config) -%}
  {%- set moment = adapter.snapshot_expression(updated_at, columns, 'updated_at') if updated_at else snapshot_get_time() -%}
  {%- set keys = [] -%}
  {%- for key in silt_list(config.get('unique_key')) -%}
    {%- do keys.append(adapter.snapshot_expression(key, columns, 'unique_key')) -%}
  {%- endfor -%}
  {{ return({
    'unique_key': config.get('unique_key'),
    'updated_at': moment,
    'row_changed': row_changed,
    'scd_id': snapshot_hash_arguments(api.Relation.scd_args(keys, moment)),
    'invalidate_hard_deletes': hard_deletes == 'invalidate',
    'hard_deletes': hard_deletes
  }) }}
{% endmacro %}


{% macro silt_snapshot_row_changed(node, snapshotted_rel, current_rel, target_exists) %}
  {%- set check_cols = config.get('check_cols') -%}
  {%- set compared = node['compiled_code'] -%}
  {%- if check_cols != 'all' -%}
    {%- if check_cols is string or not check_cols -%}
      {%- do exceptions.raise_compiler_error(
        "Invalid value for 'check_cols': " ~ check_cols ~ ": use 'all' or a list of columns"
      ) -%}
    {%- endif -%}
    {%- set columns = adapter.snapshot_columns(check_cols, adapter.get_column_schema_from_query(compared)) -%}
    {%- set compared = 'select ' ~ columns | join(', ') ~ ' from (\n' ~ compared ~ '\n)' -%}
  {%- endif -%}
  {{ return('(' ~ adapter.rows_differ(current_rel, compared, snapshotted_rel, this) ~ ')' if target_exists else 'false') }}
{% endmacro %}

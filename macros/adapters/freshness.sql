{% macro silt__collect_freshness(source, loaded_at_field, filter) %}
  {%- set field = adapter.config_expression(loaded_at_field) -%}
  {%- set rows = source ~ (' where ' ~ filter if filter else '') -%}
  {%- set what = '`loaded_at_field: ' ~ loaded_at_field ~ '` of the source ' ~ source -%}
  {%- set query = 'select max(' ~ field ~ ') from ' ~ rows -%}
  {%- if silt_type_of_newest(query) == 'text' -%}
    {#-- The greatest string is not always the latest time. --#}
    {%- do silt_check_texts(what, 'select ' ~ field ~ ' as loaded_at from ' ~ rows) -%}
    {%- set query = 'select max(' ~ silt_instant_of_text(field) ~ ') from ' ~ rows -%}
  {%- endif -%}
  {{ return(silt_collect_freshness('collect_freshness', what, query)) }}
{% endmacro %}


{% macro silt__collect_freshness_custom_sql(source, loaded_at_query) %}
  {%- set what = 'what the `loaded_at_query` of the source ' ~ source ~ ' gives' -%}
  {%- set query = loaded_at_query -%}
  {%- set columns = adapter.get_column_schema_from_query(query) -%}
  {%- if columns | length != 1 -%}
    {%- do exceptions.raise_compiler_error(
        'the `loaded_at_query` of the source ' ~ source ~ ' has the columns ' ~ columns | map(attribute='name') | join(', ')
        ~ ': it must return one column, the time of the newest row') -%}
  {%- endif -%}
  {%- if silt_type_of_newest(query) == 'text' -%}
    {%- set newest = 'with newest(loaded_at) as (' ~ query ~ '\n) select ' -%}
    {%- do silt_check_texts(what, newest ~ 'loaded_at from newest') -%}
    {%- set query = newest ~ silt_instant_of_text('loaded_at') ~ ' from newest' -%}
  {%- endif -%}
  {{ return(silt_collect_freshness('collect_freshness_custom_sql', what, query)) }}
{% endmacro %}


{#-- dbt reads a time without a zone as UTC, but rows are fetched with times in the session's zone: convert them. --#}
{% macro silt_collect_freshness(name, what, query) %}
  {%- set kind = silt_type_of_newest(query) -%}
  {%- set newest = '(select if(count(*) > 1, raise_error(' ~ adapter.string_literal(what ~ ' are several rows: return one row, as with `max`')
      ~ '), max(loaded_at)) from newest)' -%}
  {%- if kind not in ('timestamp', 'timestamp_ntz', 'date') -%}
    {%- do exceptions.raise_compiler_error(
        what ~ ' is of type ' ~ kind ~ ', which is neither a date nor a timestamp: use an expression that returns one, such as '
        ~ '`timestamp_seconds(...)` for seconds since 1970') -%}
  {%- endif -%}
  {% call statement(name, fetch_result=True, auto_begin=False) -%}
    with newest(loaded_at) as (
      {{ query }}
    )
    select
      {{ silt_in_utc(newest) if kind == 'timestamp' else 'cast(' ~ newest ~ ' as timestamp_ntz)' }} as max_loaded_at,
      {{ silt_in_utc(current_timestamp()) }} as snapshotted_at
  {%- endcall %}
  {{ return(load_result(name)) }}
{% endmacro %}


{#-- The type of a query's only column; `text` for every string type. --#}
{% macro silt_type_of_newest(query) %}
  {%- set kind = adapter.get_column_schema_from_query(query)[0].dtype -%}
  {{ return('text' if kind.split('(')[0] in ('string', 'varchar', 'char') else kind) }}
{% endmacro %}


{#-- Refuses a query with a string that is neither a date nor a time, because `max` would ignore it. --#}
{% macro silt_check_texts(what, query) %}
  {%- set found = run_query(
      'select loaded_at from (' ~ query ~ '\n) where loaded_at is not null and ' ~ silt_instant_of_text('loaded_at')
      ~ ' is null limit 1') -%}
  {%- if found.rows -%}
    {%- do exceptions.raise_compiler_error(
        what ~ ' is of type string, and has a value that is not a date or timestamp: ' ~ found.rows[0][0]
        ~ '. Use an expression that parses it, such as `to_timestamp(..., \'dd.MM.yyyy HH:mm\')`') -%}
  {%- endif -%}
{% endmacro %}


{#-- Converts a string to a time, or to null if it is neither a date nor a time. A string without a zone is in UTC, as is a time
     without a zone. --#}
{% macro silt_instant_of_text(text) -%}
  case when trim({{ text }}) rlike '^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}' then coalesce(
    try_cast(concat(trim({{ text }}), 'Z') as timestamp_ltz),
    try_cast(concat(trim({{ text }}), ' 00:00:00Z') as timestamp_ltz),
    try_cast(trim({{ text }}) as timestamp_ltz)
  ) end
{%- endmacro %}


{% macro silt_in_utc(instant) -%}
  timestampadd(microsecond, unix_micros({{ instant }}), timestamp_ntz'1970-01-01 00:00:00')
{%- endmacro %}

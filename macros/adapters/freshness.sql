{% macro silt__collect_freshness(source, loaded_at_field, filter) %}
  {%- set query -%}
    select max({{ loaded_at_field }}) from {{ source }}
    {%- if filter %} where {{ filter }}{% endif -%}
  {%- endset -%}
  {{ return(silt_collect_freshness('collect_freshness', query)) }}
{% endmacro %}


{% macro silt__collect_freshness_custom_sql(source, loaded_at_query) %}
  {{ return(silt_collect_freshness('collect_freshness_custom_sql', loaded_at_query)) }}
{% endmacro %}


{#-- dbt takes a time without a zone for one of UTC; rows are fetched with the time of the session's zone. --#}
{% macro silt_collect_freshness(name, query) %}
  {%- set kind = adapter.get_column_schema_from_query(query)[0].dtype -%}
  {%- set newest = '(select * from newest)' -%}
  {% call statement(name, fetch_result=True, auto_begin=False) -%}
    with newest as (
      {{ query }}
    )
    select
      {{ silt_in_utc(newest) if kind == 'timestamp' else newest }} as max_loaded_at,
      {{ silt_in_utc(current_timestamp()) }} as snapshotted_at
  {%- endcall %}
  {{ return(load_result(name)) }}
{% endmacro %}


{% macro silt_in_utc(instant) -%}
  timestampadd(microsecond, unix_micros({{ instant }}), timestamp_ntz'1970-01-01 00:00:00')
{%- endmacro %}

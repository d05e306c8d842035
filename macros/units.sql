{#-- Runs a node's own write, the block of the call, as its unit of work, and reports it as the node's result. If the write of a
     seed fails because of a value, the error names the value; if a write that changes a table (`change`: its relation and its
     query) fails because of a column, the error names the column. --#}
{% macro silt_write(unit, staged_seed=none, change=none) %}
  {%- set statement = silt_written(caller()) -%}
  {%- if execute -%}
    {%- if staged_seed is not none -%}
      {%- set response = adapter.write_seed(statement, unit, staged_seed) -%}
    {%- elif change is not none -%}
      {%- set response = adapter.write_change(statement, unit, model, change.relation, change.query) -%}
    {%- else -%}
      {%- set response = adapter.write_unit(statement, unit) -%}
    {%- endif -%}
    {%- do store_result('main', response=response) -%}
  {%- endif -%}
{% endmacro %}


{#-- Runs the statement that creates a node's view. It is not a unit of work, because creating a view twice does no harm. --#}
{% macro silt_write_view(existing_relation) %}
  {%- set statement = silt_written(caller()) -%}
  {%- if execute -%}
    {%- do store_result('main', response=adapter.write_view(statement, existing_relation)) -%}
  {%- endif -%}
{% endmacro %}


{#-- Returns the statement with the node's header, and writes it to the target path's `run` folder. --#}
{% macro silt_written(statement) %}
  {%- set written = silt_with_header(statement | trim) -%}
  {%- if execute -%}
    {{ log('Writing runtime sql for node "' ~ model['unique_id'] ~ '"') }}
    {{ write(written) }}
  {%- endif -%}
  {{ return(written) }}
{% endmacro %}


{#-- Returns the statement after the node's `sql_header`. --#}
{% macro silt_with_header(statement) %}
  {%- set header = config.get('sql_header') -%}
  {{ return((header | trim | trim(';') ~ ';\n' if header else '') ~ statement) }}
{% endmacro %}


{#-- Reports work that is not done because its result is known: a unit of work that an earlier commit contains, or a test, whose result
     has a row (`table`). --#}
{% macro silt_skip(response, table=none) %}
  {{ write('-- ' ~ response) }}
  {%- do store_result('main', response=response, agate_table=table) -%}
{% endmacro %}


{#-- Like dbt's own. In a project's own materialization, the statement with the result `main` is the node's own write; every other
     statement is a unit of work that is identified by its SQL. --#}
{% macro statement(name=none, fetch_result=False, auto_begin=True, language='sql') -%}
  {%- if execute -%}
    {%- set compiled_code = caller() -%}
    {%- if name == 'main' -%}
      {{ log('Writing runtime ' ~ language ~ ' for node "' ~ model['unique_id'] ~ '"') }}
      {{ write(compiled_code) }}
    {%- endif -%}
    {%- if language == 'sql' -%}
      {%- do adapter.enter_main(compiled_code) if name == 'main' -%}
      {%- set response, table = adapter.execute(compiled_code, auto_begin=auto_begin, fetch=fetch_result) -%}
      {%- do adapter.leave_main() if name == 'main' -%}
    {%- elif language == 'python' -%}
      {#- Only dbt's `statement` may call dbt's function of that name. -#}
      {%- set response, table = adapter.submit_python_job(model, compiled_code), none -%}
    {%- else -%}
      {%- do exceptions.raise_compiler_error("statement macro didn't get supported language") -%}
    {%- endif -%}
    {%- if name is not none -%}
      {{ store_result(name, response=response, agate_table=table) }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

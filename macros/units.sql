{#-- Runs a node's own write, the call's block, as its unit of work, and reports it as the node's result. For a
     seed, a write that fails for a value names it; of a write that changes a table (`change`: its relation and its query), one
     that fails for a column names that. --#}
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


{#-- Runs the statement that creates a node's view, which is no unit of work: created twice, it is the same. --#}
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


{#-- Reports a unit of work that is skipped, because an earlier commit has done it. --#}
{% macro silt_skip(response) %}
  {{ write('-- ' ~ response) }}
  {%- do store_result('main', response=response) -%}
{% endmacro %}


{#-- dbt's own. In a materialization of the project's, the text that is run as the result `main` is the node's own write, and
     each other statement is a unit of work by its text. --#}
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
      {#- dbt's function of that name is for dbt's `statement` alone. -#}
      {%- set response, table = adapter.submit_python_job(model, compiled_code), none -%}
    {%- else -%}
      {%- do exceptions.raise_compiler_error("statement macro didn't get supported language") -%}
    {%- endif -%}
    {%- if name is not none -%}
      {{ store_result(name, response=response, agate_table=table) }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

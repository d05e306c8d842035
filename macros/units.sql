{#-- Runs a node's own write, the call's block, as its unit of work, and reports it as the node's result. A seed's names the
     value that a failed write was at fault for. --#}
{% macro silt_write(unit, staged_seed=none) %}
  {%- set header = config.get('sql_header') -%}
  {%- set statement = (header | trim | trim(';') ~ ';\n' if header else '') ~ (caller() | trim) -%}
  {%- if execute -%}
    {{ log('Writing runtime sql for node "' ~ model['unique_id'] ~ '"') }}
    {{ write(statement) }}
    {%- if staged_seed is none -%}
      {%- set response = adapter.write_unit(statement, unit) -%}
    {%- else -%}
      {%- set response = adapter.write_seed(statement, unit, staged_seed) -%}
    {%- endif -%}
    {%- do store_result('main', response=response) -%}
  {%- endif -%}
{% endmacro %}


{#-- Reports a unit of work that an earlier commit had done. --#}
{% macro silt_skip(response) %}
  {{ write('-- ' ~ response) }}
  {%- do store_result('main', response=response) -%}
{% endmacro %}

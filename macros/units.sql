{#-- Runs a node's own write, the call's block, as its unit of work, and reports it as the node's result. --#}
{% macro silt_write(unit) %}
  {%- set header = config.get('sql_header') -%}
  {%- set statement = (header | trim | trim(';') ~ ';\n' if header else '') ~ (caller() | trim) -%}
  {%- if execute -%}
    {{ log('Writing runtime sql for node "' ~ model['unique_id'] ~ '"') }}
    {{ write(statement) }}
    {%- do store_result('main', response=adapter.write_unit(statement, unit)) -%}
  {%- endif -%}
{% endmacro %}


{#-- Reports a unit of work that an earlier commit had done. --#}
{% macro silt_skip(response) %}
  {{ write('-- ' ~ response) }}
  {%- do store_result('main', response=response) -%}
{% endmacro %}

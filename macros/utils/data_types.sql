{#-- dbt means a number of eight bytes; Spark's own `float` has four. --#}
{% macro silt__type_float() %}
  {{ return('double') }}
{% endmacro %}


{#-- Gives null where a value is not one of the type, whether the session is strict about it (ANSI) or not. --#}
{% macro silt__safe_cast(field, type) %}
  {%- if cast_from_string_unsupported_for(type) and field is string -%}
    try_cast({{ field.strip('"').strip("'") }} as {{ type }})
  {%- else -%}
    try_cast({{ field }} as {{ type }})
  {%- endif -%}
{% endmacro %}

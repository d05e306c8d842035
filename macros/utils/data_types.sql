{#-- dbt's float has eight bytes; Spark's `float` has four. --#}
{% macro silt__type_float() %}
  {{ return('double') }}
{% endmacro %}


{#-- An empty array has no element type, so it cannot be written to a table without the cast. --#}
{% macro silt__array_construct(inputs, data_type) -%}
  {%- if inputs -%}
    array({{ inputs | join(', ') }})
  {%- else -%}
    cast(array() as array<{{ api.Column.translate_type(data_type) }}>)
  {%- endif -%}
{%- endmacro %}

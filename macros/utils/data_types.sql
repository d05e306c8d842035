{#-- dbt means a number of eight bytes; Spark's own `float` has four. --#}
{% macro silt__type_float() %}
  {{ return('double') }}
{% endmacro %}


{#-- An array of nothing has no type of its own, and no table could hold it. --#}
{% macro silt__array_construct(inputs, data_type) -%}
  {%- if inputs -%}
    array({{ inputs | join(', ') }})
  {%- else -%}
    cast(array() as array<{{ data_type }}>)
  {%- endif -%}
{%- endmacro %}

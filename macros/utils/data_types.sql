{#-- dbt means a number of eight bytes; Spark's own `float` has four. --#}
{% macro silt__type_float() %}
  {{ return('double') }}
{% endmacro %}

{#-- The compiled code of a Python model is Python, which cannot be part of a query. --#}
{% macro silt__get_limit_sql(sql, limit) %}
  {%- if model is defined and model['language'] == 'python' -%}
    {{ exceptions.raise_compiler_error(
      "`dbt show` runs SQL, but " ~ model['name'] ~ " is a Python model: run it, then show its table with"
      ~ " --inline \"select * from {{ ref('" ~ model['name'] ~ "') }}\""
    ) }}
  {%- endif -%}
  {{ adapter.limited(adapter.one_query(sql), limit) }}
{% endmacro %}

{#- The landed files of one source, read as they lie. `source()` is called for the lineage graph. -#}
{% macro landed(name) %}
  {%- do source('landing', name) -%}
  {%- set folder = var('landing') or invocation_args_dict.project_dir ~ '/landing' -%}
  parquet.`{{ folder }}/{{ name }}`
{%- endmacro %}

{#- Reads the landed files of one source directly. `source()` is called only for the lineage graph. -#}
{% macro landed(name) %}
  {%- do source('landing', name) -%}
  {%- set folder = var('landing') or invocation_args_dict.project_dir ~ '/landing' -%}
  read_files('{{ folder }}/{{ name }}', format => 'parquet')
{%- endmacro %}

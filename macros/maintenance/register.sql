{#-- Registers all tables of the profile's database in its metastore (`catalog` in the profile), and removes the entries of
     tables that no longer exist:

       dbt run-operation silt_register --#}
{% macro silt_register() %}
  {%- if model is defined and model['resource_type'] != 'macro' -%}
    {%- do exceptions.raise_compiler_error('silt_register is an operation: run it with `dbt run-operation`, outside of runs') -%}
  {%- endif -%}
  {%- if execute -%}
    {%- for line in adapter.register_tables() -%}
      {%- do print(line) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}

{#-- Macros that packages and projects for dbt-databricks call by name, without dispatch. --#}

{#-- Liquid clustering has no effect here; the config causes a warning that says so. --#}
{% macro liquid_clustered_cols() %}{% endmacro %}


{#-- For hooks, like `silt_optimize`. The config `zorder` names the columns, as in dbt-databricks. --#}
{% macro optimize(relation) %}
  {{ return(silt_optimize(relation, zorder_by=config.get('zorder'))) }}
{% endmacro %}


{% macro databricks_copy_into(target_table) %}
  {%- set others = [varargs, kwargs] -%}
  {%- do exceptions.raise_compiler_error(
    "`databricks_copy_into` loads files by COPY INTO, which only Databricks has: load " ~ target_table
    ~ " with a model that selects from `read_files(...)`"
  ) -%}
{% endmacro %}

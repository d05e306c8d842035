{#-- Macros that packages and projects for dbt-databricks call by name, without dispatch. --#}

{#-- The clause `cluster by` of the config `liquid_clustered_by` or `cluster_by`; empty without them. --#}
{% macro liquid_clustered_cols() %}
  {{ return(silt_cluster_clause() | trim) }}
{% endmacro %}


{#-- For hooks, like `silt_optimize`. The config `zorder` names the columns of a table that is not clustered, as in dbt-databricks. --#}
{% macro optimize(relation) %}
  {{ return(silt_optimize(relation, zorder_by=none if adapter.clustering(model.config).columns else config.get('zorder'))) }}
{% endmacro %}


{% macro databricks_copy_into(target_table) %}
  {%- set others = [varargs, kwargs] -%}
  {%- do exceptions.raise_compiler_error(
    "`databricks_copy_into` loads files by COPY INTO, which only Databricks has: load " ~ target_table
    ~ " with a model that selects from `read_files(...)`"
  ) -%}
{% endmacro %}

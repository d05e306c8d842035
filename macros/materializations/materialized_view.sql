{#-- No background process could refresh a materialized view, and Spark's own materialized views need a pipeline. --#}
{% materialization materialized_view, adapter='silt' %}
  {%- set node = adapter.begin_node('materialized_view', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- do exceptions.raise_compiler_error(
    "materialized views are not supported: use `materialized: incremental`, which each run brings up to date, or `table`"
  ) -%}
{% endmaterialization %}

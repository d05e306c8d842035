{#-- Warns of configs without effect, once in a run, with the models that have them; fails for a configuration that cannot be
     used, before anything is written. --#}
{% macro silt_check_configs() %}
  {%- for warning in adapter.config_warnings(model, graph.nodes, selected_resources) -%}
    {%- do exceptions.warn(warning) -%}
  {%- endfor -%}
{% endmacro %}


{#-- The materialization of the project's that dbt would take if this adapter declared none of that name; else none. The beginning
     of every materialization. --#}
{% macro silt_other_materialization(name) %}
  {%- for warning in adapter.unused_macro_warnings(name) -%}
    {%- do exceptions.warn(warning) -%}
  {%- endfor -%}
  {%- set macro = adapter.other_materialization(name) -%}
  {{ return(none if macro is none else context[macro.package_name][macro.name]) }}
{% endmacro %}


{#-- Warns of the rows or versions that the write takes from the table that is there. Before the write, so that `--warn-error`
     prevents it. --#}
{% macro silt_warn_of_losses(existing_relation, target_relation) %}
  {%- set warning = adapter.loss_warning(model, existing_relation, target_relation) -%}
  {%- if warning -%}
    {%- do exceptions.warn(warning) -%}
  {%- endif -%}
{% endmacro %}

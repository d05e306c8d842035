{#-- Warns once per run about configs without effect, with the models that set them. Fails for an invalid configuration before
     anything is written. --#}
{% macro silt_check_configs() %}
  {%- for warning in adapter.config_warnings(model, graph.nodes, selected_resources, graph.sources) -%}
    {%- do exceptions.warn(warning) -%}
  {%- endfor -%}
{% endmacro %}


{#-- Returns the project's materialization that dbt would use if this adapter had none of that name, or else none. Called first in
     every materialization. --#}
{% macro silt_other_materialization(name) %}
  {%- for warning in adapter.unused_macro_warnings(name) -%}
    {%- do exceptions.warn(warning) -%}
  {%- endfor -%}
  {%- set macro = adapter.other_materialization(name) -%}
  {{ return(none if macro is none else context[macro.package_name][macro.name]) }}
{% endmacro %}


{#-- Warns about rows or versions of the existing table that the write removes. Called before the write, so that `--warn-error`
     prevents it. --#}
{% macro silt_warn_of_losses(existing_relation, target_relation) %}
  {%- set warning = adapter.loss_warning(model, existing_relation, target_relation) -%}
  {%- if warning -%}
    {%- do exceptions.warn(warning) -%}
  {%- endif -%}
{% endmacro %}

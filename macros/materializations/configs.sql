{#-- Configs that have no effect here are said so, once in a run, with the models of the run that have them; one that cannot be
     meant fails before anything is written. --#}
{% macro silt_check_configs() %}
  {%- for warning in adapter.config_warnings(model, graph.nodes, selected_resources) -%}
    {%- do exceptions.warn(warning) -%}
  {%- endfor -%}
{% endmacro %}

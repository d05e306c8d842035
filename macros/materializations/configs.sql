{#-- Warns of configs without effect, once in a run, with the models that have them; fails for a configuration that cannot be
     used, before anything is written. --#}
{% macro silt_check_configs() %}
  {%- for warning in adapter.config_warnings(model, graph.nodes, selected_resources) -%}
    {%- do exceptions.warn(warning) -%}
  {%- endfor -%}
{% endmacro %}

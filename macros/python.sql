{#-- A python model's code, and where its rows go: a temporary view, which the model's statement then reads. --#}
{% macro silt_python_code(compiled_code, view) -%}
{{ compiled_code }}

__silt_view__ = "{{ view }}"
{%- endmacro %}

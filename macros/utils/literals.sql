{#-- In a text between single quotes, a backslash opens an escape, unless the profile's settings say otherwise. --#}
{% macro silt__escape_single_quotes(expression) -%}
{{ adapter.escape_single_quotes(expression | string) }}
{%- endmacro %}


{#-- Gives null where a value is not one of the type, whether the session is strict about it (ANSI) or not. An array, map, struct
     or variant, which no text can be cast to, may be given as JSON, as a list or mapping of YAML, or as an expression. --#}
{% macro silt__safe_cast(field, type) %}
  {%- set nested = cast_from_string_unsupported_for(type) or type | lower == 'variant' -%}
  {{- adapter.nested_literal(field, type) if nested else 'try_cast(' ~ field ~ ' as ' ~ type ~ ')' -}}
{% endmacro %}

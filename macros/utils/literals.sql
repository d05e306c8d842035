{#-- In a string in single quotes, a backslash begins an escape sequence, unless the profile's settings change this. --#}
{% macro silt__escape_single_quotes(expression) -%}
{{ adapter.escape_single_quotes(expression | string) }}
{%- endmacro %}


{#-- Returns null for a value that does not fit the type, in ANSI mode or not. An array, map, struct or variant, to which no
     string can be cast, may be given as JSON, as a YAML list or mapping, or as an expression. --#}
{% macro silt__safe_cast(field, type) %}
  {%- set type = api.Column.translate_type(type) -%}
  {%- set nested = cast_from_string_unsupported_for(type) or type | lower == 'variant' -%}
  {{- adapter.nested_literal(field, type) if nested else 'try_cast(' ~ field ~ ' as ' ~ type ~ ')' -}}
{% endmacro %}


{% macro silt__cast(field, type) %}
  cast({{ field }} as {{ api.Column.translate_type(type) }})
{% endmacro %}

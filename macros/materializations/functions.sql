{#-- Creates an SQL function in one Spark statement: its body is an expression or a query, kept unchanged. --#}
{% macro silt__scalar_function_create_replace_signature_sql(target_relation) -%}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  RETURNS {{ api.Column.translate_type(model.returns.data_type) }}
  {%- if config.persist_relation_docs() and model.description %}
  COMMENT {{ adapter.string_literal(model.description) }}
  {%- endif %}
  {{ scalar_function_volatility_sql() }}
{%- endmacro %}


{% macro silt__formatted_scalar_function_args_sql() -%}
  {%- set parts = [] -%}
  {%- for argument in model.arguments -%}
    {%- set part = [adapter.quote(argument.name), api.Column.translate_type(argument.data_type)] -%}
    {%- if argument.get('default_value') is not none -%}
      {%- do part.append('DEFAULT ' ~ argument.get('default_value')) -%}
    {%- endif -%}
    {%- if config.persist_column_docs() and argument.get('description') -%}
      {%- do part.append('COMMENT ' ~ adapter.string_literal(argument.get('description'))) -%}
    {%- endif -%}
    {%- do parts.append(part | join(' ')) -%}
  {%- endfor -%}
  {{ parts | join(', ') }}
{%- endmacro %}


{% macro silt__scalar_function_body_sql() -%}
  RETURN
  {{ model.compiled_code | trim | trim(';') }}
{%- endmacro %}


{#-- Spark has two kinds, deterministic and not deterministic: dbt's `stable` is neither. --#}
{% macro silt__scalar_function_volatility_sql() -%}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
{%- endmacro %}


{#-- The code is kept unchanged. Spark runs it if the profile has `python_functions: true`. --#}
{% macro silt__scalar_function_python(target_relation) %}
  {{ silt__scalar_function_create_replace_signature_sql(target_relation) }}
  LANGUAGE PYTHON
  {{ get_function_python_options() | trim }}
  AS {{ adapter.string_literal(model.compiled_code) }}
{% endmacro %}


{% macro silt__aggregate_function_sql(target_relation) %}
  {%- do exceptions.raise_compiler_error(
    "the function `" ~ model.name ~ "` is an aggregate, which Spark cannot create: write the aggregates in the models that "
    ~ "need them, or in a macro"
  ) -%}
{% endmacro %}


{% macro silt__aggregate_function_python(target_relation) %}
  {{ silt__aggregate_function_sql(target_relation) }}
{% endmacro %}

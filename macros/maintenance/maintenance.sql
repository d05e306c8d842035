{#-- Maintenance of tables. As an operation, a macro runs the statement and prints its result:

       dbt run-operation silt_optimize --args '{table: shop.orders, zorder_by: [customer_id]}'

     In a hook, the same macro returns the statement, which the hook then runs:

       {{ config(post_hook="{{ silt_optimize(this) }}") }} --#}

{#-- Compacts small files. `where`: a condition on partition columns; `zorder_by`: a column or a list of columns. --#}
{% macro silt_optimize(table=none, where=none, zorder_by=none) %}
  {%- do silt_check_table('silt_optimize', table) -%}
  {%- set columns = [zorder_by] if zorder_by is string else (zorder_by or []) -%}
  {%- set parts = ['optimize ' ~ table] -%}
  {%- do parts.append('where ' ~ where) if where -%}
  {%- set names = [] -%}
  {%- for column in columns -%}
    {%- do names.append(adapter.config_expression(column)) -%}
  {%- endfor -%}
  {%- do parts.append('zorder by (' ~ names | join(', ') ~ ')') if names -%}
  {{ return(silt_carry_out(parts | join(' '))) }}
{% endmacro %}


{#-- Deletes files that no version within the retention needs. `dry_run` only lists them; `lite` considers only files that
     the log names. --#}
{% macro silt_vacuum(table=none, retain_hours=none, dry_run=false, lite=false) %}
  {%- do silt_check_table('silt_vacuum', table) -%}
  {%- set parts = ['vacuum ' ~ table] -%}
  {%- do parts.append('lite') if lite -%}
  {%- do parts.append('retain ' ~ retain_hours ~ ' hours') if retain_hours is not none -%}
  {%- do parts.append('dry run') if dry_run -%}
  {{ return(silt_carry_out(parts | join(' '))) }}
{% endmacro %}


{#-- Restores the table to a version or a timestamp. --#}
{% macro silt_restore(table=none, version=none, timestamp=none) %}
  {%- do silt_check_table('silt_restore', table) -%}
  {%- if (version is none) == (timestamp is none) -%}
    {%- do exceptions.raise_compiler_error('silt_restore takes either a version or a timestamp') -%}
  {%- endif -%}
  {%- if version is not none -%}
    {%- set version_clause = 'version as of ' ~ version -%}
  {%- else -%}
    {%- set version_clause = 'timestamp as of ' ~ adapter.string_literal(timestamp | string) -%}
  {%- endif -%}
  {{ return(silt_carry_out('restore table ' ~ table ~ ' to ' ~ version_clause)) }}
{% endmacro %}


{#-- Prints the versions of the table, newest first, like `silt history`. --#}
{% macro silt_history(table=none, limit=none) %}
  {%- do silt_check_table('silt_history', table) -%}
  {%- if model is defined and model['resource_type'] != 'macro' -%}
    {{ return('describe history ' ~ table ~ (' limit ' ~ limit if limit is not none else '')) }}
  {%- endif -%}
  {%- if execute -%}
    {%- do print(adapter.table_history(table, limit)) -%}
  {%- endif -%}
{% endmacro %}


{#-- In an operation, `model` is the macro that runs; in a hook it is a node. A statement that returns no rows, such as a restore,
     has only a response to print. --#}
{% macro silt_carry_out(text) %}
  {%- if model is defined and model['resource_type'] != 'macro' -%}
    {{ return(text) }}
  {%- endif -%}
  {%- if execute -%}
    {%- call statement('silt_operation', fetch_result=true, auto_begin=false) -%}
      {{ text }}
    {%- endcall -%}
    {%- set result = load_result('silt_operation') -%}
    {%- do print(adapter.text_table(result['table'], result['response'])) -%}
  {%- endif -%}
{% endmacro %}


{% macro silt_check_table(macro, table) %}
  {%- if not table -%}
    {%- do exceptions.raise_compiler_error(
      macro ~ " needs the name of a table: dbt run-operation " ~ macro ~ " --args '{table: main.orders}'"
    ) -%}
  {%- endif -%}
{% endmacro %}

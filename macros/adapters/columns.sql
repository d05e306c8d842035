{#-- The columns of a contract, with their types, nullability and comments, then the table's constraints. --#}
{% macro silt_contract_columns() -%}
  {%- set parts = [] -%}
  {%- set constraints = [] -%}
  {%- for column in model['columns'].values() -%}
    {%- set part = [adapter.quote(column['name']), column['data_type']] -%}
    {%- for constraint in column.get('constraints') or [] -%}
      {%- if constraint['type'] == 'not_null' -%}
        {%- do part.append('not null') -%}
      {%- else -%}
        {%- do constraints.extend(adapter.render_raw_model_constraints([silt_table_constraint(column, constraint)])) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if config.persist_column_docs() and column.get('description') -%}
      {%- do part.append('comment ' ~ adapter.string_literal(column['description'])) -%}
    {%- endif -%}
    {%- do parts.append(part | join(' ')) -%}
  {%- endfor -%}
  {%- do constraints.extend(adapter.render_raw_model_constraints(model['constraints'])) -%}
  {{ (parts + constraints) | join(',\n    ') }}
{%- endmacro %}


{#-- A column's constraint as the table's, the only place where the format has one. --#}
{% macro silt_table_constraint(column, constraint) %}
  {%- set table_constraint = dict(constraint) -%}
  {%- do table_constraint.update({'columns': [adapter.quote(column['name'])]}) -%}
  {{ return(table_constraint) }}
{% endmacro %}


{#-- The query's columns with their comments; nothing if none is to have one. --#}
{% macro silt_documented_columns(sql) -%}
  {%- set comments = silt_column_comments() -%}
  {%- if comments -%}
    {%- set names = get_columns_in_query(sql) -%}
    {%- do validate_doc_columns(this, model.columns, names) -%}
    {%- for name in names -%}
      {{ adapter.quote(name) }}{{ ' comment ' ~ adapter.string_literal(comments[name | lower]) if comments.get(name | lower) }}
      {{- ',\n    ' if not loop.last }}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}


{#-- By lower-case name: what the model's documentation says of each column, where it is to be kept in the database. --#}
{% macro silt_column_comments() %}
  {%- set comments = {} -%}
  {%- if config.persist_column_docs() and model.columns -%}
    {%- for column in model.columns.values() -%}
      {%- if column.get('description') -%}
        {%- do comments.update({column['name'] | lower: column['description']}) -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(comments) }}
{% endmacro %}


{#-- From the query's schema, without running it. --#}
{% macro silt__get_columns_in_query(select_sql) %}
  {{ return(adapter.get_column_schema_from_query(select_sql) | map(attribute='name') | list) }}
{% endmacro %}


{% macro silt__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}


{% macro silt__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if add_columns -%}
    {%- call statement() -%}
      alter table {{ relation }} add columns (
        {%- for column in add_columns %}{{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}{% endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement() -%}
      alter table {{ relation }} drop columns (
        {%- for column in remove_columns %}{{ column.quoted }}{{ ', ' if not loop.last }}{% endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
{% endmacro %}


{% macro silt__create_columns(relation, columns) %}
  {%- do silt__alter_relation_add_remove_columns(relation, columns, none) -%}
{% endmacro %}


{% macro silt__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}

{#-- The query's columns with their comments and `types`, or nothing if no column has one; `with_fields` adds nested fields,
     as in CREATE VIEW. `persist_docs` sets the comments of the nested fields of a table. --#}
{% macro silt_documented_columns(sql, with_fields=false, types={}) -%}
  {%- set documented = config.persist_column_docs() and model.columns -%}
  {%- if documented or types -%}
    {%- set columns, comments = adapter.get_column_schema_from_query(silt_with_header(sql)), {} -%}
    {%- if documented -%}
      {%- set names = adapter.documentable_names(columns) -%}
      {%- do comments.update(adapter.documented_comments(columns, validate_doc_columns(this, model.columns, names))) -%}
    {%- endif -%}
    {%- if comments or types -%}
      {%- for column in columns -%}
        {{ column.quoted }}{{ ' ' ~ types[column.name] if column.name in types }}
        {{- ' comment ' ~ adapter.string_literal(comments[column.name]) if column.name in comments }}
        {{- ',\n    ' if not loop.last }}
      {%- endfor -%}
      {%- if with_fields -%}
        {%- for column in columns -%}
          {%- for field in column.fields if field.column in comments -%}
            {{ ',\n    ' ~ field.quoted ~ ' comment ' ~ adapter.string_literal(comments[field.column]) }}
          {%- endfor -%}
        {%- endfor -%}
      {%- endif -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}


{% macro silt__get_assert_columns_equivalent(sql) -%}
  {%- do adapter.check_contract(model) -%}
  {{ return(default__get_assert_columns_equivalent(sql)) }}
{%- endmacro %}


{% macro silt__get_empty_schema_sql(columns) -%}
  {{ return(default__get_empty_schema_sql(adapter.with_quotes(columns))) }}
{%- endmacro %}


{% macro silt__get_column_names() -%}
  {%- for column in adapter.with_quotes(model['columns']).values() -%}
    {{ adapter.quote(column['name']) if column['quote'] else column['name'] }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{#-- Column names in a contract are case-insensitive, as in Spark. --#}
{% macro silt__format_column(column) -%}
  {%- set name = column.name | lower -%}
  {{ return({'name': name, 'data_type': column.dtype, 'formatted': name ~ ' ' ~ column.dtype}) }}
{%- endmacro %}


{#-- Reads the names from the query's schema, without running the query. --#}
{% macro silt__get_columns_in_query(select_sql) %}
  {{ return(adapter.get_column_schema_from_query(select_sql) | map(attribute='name') | list) }}
{% endmacro %}


{% macro silt__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}


{#-- `drop columns if exists`, because another run of the same unit of work may have dropped a column in the meantime. --#}
{% macro silt__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if add_columns -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} add columns (
        {%- for column in add_columns %}{{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}{% endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} drop columns if exists (
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
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}


{% macro silt__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
  {{ return(default__get_empty_subquery_sql(adapter.one_query(select_sql), select_sql_header)) }}
{% endmacro %}

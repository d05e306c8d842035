{#-- dbt itself reads the catalog without a statement; these macros are for packages and projects that call them. --#}
{% macro silt__list_schemas(database) %}
  {{ return(run_query('show schemas in ' ~ adapter.quote(database or target.database))) }}
{% endmacro %}


{% macro silt__check_schema_exists(information_schema, schema) %}
  {{ return(run_query(
    'select count(*) from ' ~ information_schema.replace(information_schema_view='schemata')
    ~ ' where schema_name = lower(' ~ adapter.string_literal(schema) ~ ')'
  )) }}
{% endmacro %}


{% macro silt__list_relations_without_caching(schema_relation) %}
  {%- call statement('list_relations_without_caching', fetch_result=True) -%}
    select
      table_catalog as database,
      table_name as name,
      table_schema as schema,
      if(table_type = 'VIEW', 'view', 'table') as type
    from {{ adapter.quote(schema_relation.database or target.database) }}.information_schema.tables
    where table_schema = lower({{ adapter.string_literal(schema_relation.schema) }})
  {%- endcall -%}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}

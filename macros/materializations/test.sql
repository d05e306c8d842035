{#-- dbt's own, but stored failures replace the earlier ones in one step: dropped first, they would be gone for another run of
     the same test. --#}
{% materialization test, adapter='silt' %}
  {%- if not should_store_failures() -%}
    {{ return(materialization_test_default()) }}
  {%- endif -%}
  {%- set kind = config.get('store_failures_as') or 'table' -%}
  {%- if kind not in ['table', 'view'] -%}
    {%- do exceptions.raise_compiler_error(
      "'" ~ kind ~ "' is not a valid value for `store_failures_as`. Accepted values are: ['ephemeral', 'table', 'view']"
    ) -%}
  {%- endif -%}
  {%- set existing_relation = adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
  {%- set target_relation = api.Relation.create(
    database=database, schema=schema, identifier=model['alias'], type=kind
  ) -%}
  {%- set failures = get_limit_subquery_sql(sql, config.get('limit')) -%}
  {%- if kind == 'view' -%}
    {%- set creation = get_create_view_as_sql(target_relation, failures) -%}
  {%- else -%}
    {%- set creation = silt_create_table(target_relation.incorporate(replaces=true), failures) -%}
  {%- endif -%}
  {%- if flags.REQUIRE_SQL_HEADER_IN_TEST_CONFIGS -%}
    {%- set creation = silt_with_header(creation) -%}
  {%- endif -%}
  {%- do adapter.write_view(creation, existing_relation) -%}

  {%- call statement('main', fetch_result=True) -%}
    {{ get_test_sql(
      'select * from ' ~ target_relation, config.get('fail_calc'), config.get('warn_if'), config.get('error_if'), limit=none
    ) }}
  {%- endcall -%}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

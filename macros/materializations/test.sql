{% materialization test, adapter='silt' %}
  {%- set other = adapter.begin_node('test', context).other -%}
  {{ return(silt_test() if other is none else other()) }}
{% endmaterialization %}


{#-- Packages that wrap dbt's own materialization (`dbt.materialization_test_default`) wrap this one. --#}
{% materialization test, default %}
  {{ return(silt_test()) }}
{% endmaterialization %}


{#-- Like dbt's own, but replaces earlier stored failures in one step. If they were dropped first, another run of the same test
     would not find them. --#}
{% macro silt_test() %}
  {%- set audited = none if should_store_failures() else adapter.audited_test(model) -%}
  {%- if audited is not none -%}
    {%- do silt_skip(audited.response, audited.table) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set failures = get_limit_subquery_sql(adapter.one_query(sql), config.get('limit')) -%}
  {%- set stored = silt_store_failures(failures) if should_store_failures() else none -%}
  {%- set query = get_test_sql(
    failures if stored is none else 'select * from ' ~ stored,
    config.get('fail_calc'), config.get('warn_if'), config.get('error_if'), limit=none
  ) -%}
  {%- if stored is none -%}
    {%- do silt_run_test(silt_test_header(query)) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- call statement('main', fetch_result=True) -%}
    {{ query }}
  {%- endcall -%}
  {{ return({'relations': [stored]}) }}
{% endmacro %}


{#-- Runs the query of a test, unless the test may be reused and has passed on the same input. --#}
{% macro silt_run_test(query) %}
  {%- set build = adapter.test_build(model, query) -%}
  {%- set passed = none if build is none else adapter.passed_test(build, model, query) -%}
  {%- if passed is not none -%}
    {%- do silt_skip(passed.response, passed.table) -%}
    {{ return('') }}
  {%- endif -%}
  {%- call statement('main', fetch_result=True) -%}
    {{ query }}
  {%- endcall -%}
  {%- if build is not none -%}
    {%- do adapter.note_test(load_result('main').response, load_result('main').table) -%}
  {%- endif -%}
{% endmacro %}


{% macro silt_store_failures(failures) %}
  {%- set kind = config.get('store_failures_as') or 'table' -%}
  {%- if kind not in ['table', 'view'] -%}
    {%- do exceptions.raise_compiler_error(
      "'" ~ kind ~ "' is not a valid value for `store_failures_as`. Accepted values are: ['ephemeral', 'table', 'view']"
    ) -%}
  {%- endif -%}
  {%- do adapter.check_place(model) -%}
  {%- set existing_relation = adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
  {%- set target_relation = api.Relation.create(
    database=database, schema=schema, identifier=model['alias'], type=kind
  ) -%}
  {%- if kind == 'view' -%}
    {%- set creation = get_create_view_as_sql(target_relation, failures) -%}
  {%- else -%}
    {%- set creation = silt_create_table(target_relation.incorporate(replaces=true), failures) -%}
  {%- endif -%}
  {%- do adapter.write_view(silt_test_header(creation), existing_relation) -%}
  {{ return(target_relation) }}
{% endmacro %}


{% macro silt_test_header(statement) %}
  {{ return(silt_with_header(statement) if flags.REQUIRE_SQL_HEADER_IN_TEST_CONFIGS else statement) }}
{% endmacro %}


{#-- dbt reads `failures` as a whole number, and any other value is an error of its JSON schema. The query of `count(*)`, which is always a
     whole number, is dbt's own. --#}
{% macro silt__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {%- if fail_calc | lower | replace(' ', '') == 'count(*)' -%}
    {{ return(default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit)) }}
  {%- endif -%}
  {%- set failing = '(\n' ~ main_sql ~ ('\nlimit ' ~ limit if limit is not none) ~ '\n) dbt_internal_test' -%}
  select
    failures,
    failures {{ warn_if }} as should_warn,
    failures {{ error_if }} as should_error
  from (
    select {{ adapter.whole_number(fail_calc, failing, model) }} as failures
    from (
      select {{ fail_calc }} as failures
      from {{ failing }}
    )
  )
{%- endmacro %}


{#-- dbt's own macro puts each value in quotes as it is. --#}
{% macro silt__test_accepted_values(model, column_name, values, quote=True) %}
  {%- set written = [] -%}
  {%- for value in values -%}
    {%- do written.append("'" ~ escape_single_quotes(value | string) ~ "'" if quote else value) -%}
  {%- endfor %}

with all_values as (

    select
        {{ column_name }} as value_field,
        count(*) as n_records

    from {{ model }}
    group by {{ column_name }}

)

select *
from all_values
where value_field not in (
    {{ written | join(',') }}
)

{% endmacro %}

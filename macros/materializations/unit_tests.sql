{#-- dbt's own, unless the test may be reused and has passed on the same input. --#}
{% materialization unit, adapter='silt' %}
  {%- set build = adapter.unit_test_build(model, sql) -%}
  {%- set passed = none if build is none else adapter.passed_test(build, model, sql) -%}
  {%- if passed is not none -%}
    {%- do silt_skip(passed.response, passed.table) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set done = materialization_unit_default() -%}
  {%- if build is not none -%}
    {%- do adapter.note_test(load_result('main').response, load_result('main').table) -%}
  {%- endif -%}
  {{ return(done) }}
{% endmaterialization %}


{#-- Replaces dbt's own macro, whose casts turn a value that does not fit its type into null, and round numbers: such a test
     passes or fails for a reason that its author does not see. --#}
{% macro get_fixture_sql(rows, column_name_to_data_types) %}
  {%- set relation = defer_relation if (defer_relation and not load_relation(this)) else this -%}
  {%- set types, names = {}, {} -%}
  {%- for column in adapter.get_columns_in_relation(relation) -%}
    {%- do types.update({column.name | lower: column.declared_type}) -%}
    {%- do names.update({column.name | lower: column.quoted}) -%}
  {%- endfor -%}
  {%- if not types -%}
    {%- do exceptions.raise_compiler_error(
      "Not able to get columns for unit test '" ~ model.name ~ "' from relation " ~ this ~ " because "
      ~ adapter.missing_input(model)
    ) -%}
  {%- endif -%}
  {{ validate_fixture_rows(rows, row_number) }}
  {%- do silt_check_fixture_columns(rows, types, "'" ~ model.name ~ "'") -%}
  {%- set empty = {} -%}
  {%- for name, type in types.items() -%}
    {%- do empty.update({name: 'cast(null as ' ~ type ~ ')'}) -%}
  {%- endfor -%}
  {%- set rendered = [] -%}
  {%- for row in adapter.fixture_rows(rows, types, "the fixture for `" ~ model.name ~ "`") -%}
    {%- set whole = empty.copy() -%}
    {%- do whole.update(row) -%}
    {%- do rendered.append(whole) -%}
  {%- endfor -%}
  {{ silt_fixture_query(rendered or [empty], names) }}
  {%- if not rendered %}
limit 0
  {%- endif -%}
{% endmacro %}


{% macro get_expected_sql(rows, column_name_to_data_types, column_name_to_quoted) %}
  {%- if not rows -%}
select * from dbt_internal_unit_test_actual
limit 0
  {%- else -%}
    {%- do silt_check_fixture_columns(rows, column_name_to_data_types, 'expected output') -%}
    {{ silt_fixture_query(adapter.expected_rows(rows, column_name_to_data_types), column_name_to_quoted) }}
  {%- endif -%}
{% endmacro %}


{% macro silt_check_fixture_columns(rows, types, fixture) %}
  {%- for row in rows -%}
    {%- for name in row if name | lower not in types -%}
      {%- do exceptions.raise_compiler_error(
        "Invalid column name: '" ~ name | lower ~ "' in unit test fixture for " ~ fixture ~ "."
        "\nAccepted columns for " ~ fixture ~ " are: " ~ (types.keys() | list)
      ) -%}
    {%- endfor -%}
  {%- endfor -%}
{% endmacro %}


{% macro silt_fixture_query(rows, names) -%}
  {%- for row in rows -%}
select {% for name, value in row.items() %}{{ value }} as {{ names[name] }}{{ ', ' if not loop.last }}{% endfor %}
{%- if not loop.last %}
union all
{% endif -%}
  {%- endfor -%}
{%- endmacro %}


{#-- dbt compares rows in the form that it prints, in which equal maps differ if their keys are in another order. --#}
{% macro silt__get_unit_test_sql(main_sql, expected_fixture_sql, expected_column_names) %}
  {%- set main_sql = adapter.one_query(main_sql) -%}
  {%- if config.get('expected_sql') -%}
    {%- set types = {} -%}
    {%- for column in adapter.get_column_schema_from_query(main_sql) -%}
      {%- do types.update({column.name: column.data_type}) -%}
    {%- endfor -%}
    {%- do adapter.check_fixture_query(config.get('expected_sql'), types, 'the expected output') -%}
  {%- endif -%}
  {%- do adapter.check_given_queries(model) -%}
  {%- set columns = adapter.comparable_columns(main_sql, expected_column_names) -%}
with dbt_internal_unit_test_actual as (
  {{ silt_compared(expected_column_names, columns, 'actual', main_sql) }}
),
dbt_internal_unit_test_expected as (
  {{ silt_compared(expected_column_names, columns, 'expected', expected_fixture_sql) }}
)
select * from dbt_internal_unit_test_actual
union all
select * from dbt_internal_unit_test_expected
{% endmacro %}


{% macro silt_compared(names, columns, side, query) %}
  select
    {% for name in names %}{{ columns[loop.index0] }} as {{ name }}, {% endfor %}'{{ side }}' as `actual_or_expected`
  from (
    {{ query }}
  ) _dbt_internal_unit_test_{{ side }}
{% endmacro %}

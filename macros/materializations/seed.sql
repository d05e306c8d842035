{#-- Passes a seed's rows to Spark as one Arrow table, so that nulls, quotes and long numbers are unchanged; one statement then
     creates the table, as for a model. --#}
{% materialization seed, adapter='silt' %}
  {%- set node = adapter.begin_node('seed', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set agate_table = node.prepared -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {%- set existing_relation = node.existing -%}
  {%- if existing_relation is not none and existing_relation.is_view -%}
    {%- do exceptions.raise_compiler_error("Cannot seed to '{}', it is a view".format(existing_relation)) -%}
  {%- endif -%}

  {%- if node.done is not none -%}
    {%- do silt_skip(node.done) -%}
  {%- else -%}
    {%- set view = make_temp_relation(target_relation) -%}
    {%- set staged = adapter.stage_seed(model['name'], agate_table, view, config.get('column_types')) -%}
    {%- set query = silt_seed_query(agate_table, view, staged) -%}
    {%- call silt_write(node.unit, staged) -%}
      {{ silt_create_table(target_relation.incorporate(replaces=existing_relation is not none), query, silt_documented_columns(query, types=staged.sized)) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ silt_run_post_hooks(post_hooks, node.runs_later_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#-- With `quote_columns: false`, the names in the file are not quoted, as in dbt's other adapters. --#}
{% macro silt_seed_query(agate_table, view, staged) %}
  select
  {%- for name in agate_table.column_names %}
    cast({{ adapter.quote(name) }} as {{ staged.types.get(name) or staged.numbers.get(name) or adapter.convert_type(agate_table, loop.index0) }}) as {{ adapter.quote_seed_column(name, config.get('quote_columns')) }}{{ ',' if not loop.last }}
  {%- endfor %}
  from {{ view }}
{% endmacro %}

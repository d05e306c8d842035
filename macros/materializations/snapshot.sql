{#-- dbt's own snapshot, but with its staging table and its merge in one statement: new, changed and missing rows are found in the
     table version that the merge commits against, so two runs at the same time cannot both add a row. --#}
{% materialization snapshot, adapter='silt' %}
  {%- set node = adapter.begin_node('snapshot', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}

  {%- set target_exists = node.existing is not none -%}
  {%- set target_relation = node.existing if target_exists else this.incorporate(type='table') -%}
  {%- if not target_relation.is_table -%}
    {%- do exceptions.relation_wrong_type(target_relation, 'table') -%}
  {%- endif -%}

  {%- if node.done is not none -%}
    {%- do silt_skip(node.done) -%}
  {%- else -%}
    {%- do adapter.check_snapshot_strategy(config.get('strategy'), context) -%}
    {%- set strategy = strategy_dispatch(config.get('strategy'))(
      model, 'snapshotted_data', 'source_data', model['config'], target_exists
    ) -%}
    {%- set query = adapter.one_query(model['compiled_code']) -%}
    {%- if target_exists -%}
      {%- set added = silt_added_columns(silt_with_header(query), target_relation) if adapter.clustering(model.config).columns else [] -%}
      {%- do silt_follow_definition(target_relation, added) -%}
      {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
      {%- do adapter.assert_valid_snapshot_target_given_strategy(target_relation, columns, strategy) -%}
      {%- set staging = snapshot_staging_table(strategy, query, target_relation) -%}
      {%- call silt_write(node.unit, change={'relation': target_relation, 'query': silt_with_header(query)}) -%}
        {{ silt_snapshot_merge(strategy, staging, target_relation) }}
      {%- endcall -%}
    {%- else -%}
      {%- call silt_write(node.unit) -%}
        {{ create_table_as(False, target_relation.incorporate(replaces=false), build_snapshot_table(strategy, query)) }}
      {%- endcall -%}
    {%- endif -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(target_exists, False)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ silt_run_post_hooks(post_hooks, node.runs_later_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#-- The columns of a query that its table lacks. --#}
{% macro silt_added_columns(query, relation) %}
  {%- set there = adapter.get_columns_in_relation(relation) -%}
  {{ return(adapter.schema_changes(adapter.get_column_schema_from_query(query), there)['added']) }}
{% endmacro %}


{#-- Only the merge uses the staging query's column `dbt_change_type`; it is not written to the table. --#}
{% macro silt_snapshot_merge(strategy, staging, target_relation) %}
  {%- set columns = adapter.columns_of_changes(staging, model, target_relation, silt_with_header(adapter.one_query(model['compiled_code']))) | rejectattr('name', 'eq', 'dbt_change_type') -%}
  {{ return(snapshot_merge_sql(
    target=target_relation, source='(\n' ~ staging ~ '\n)', insert_cols=columns | map(attribute='quoted') | list
  )) }}
{% endmacro %}


{#-- Matches only current rows, so that files with only closed rows are not read. --#}
{% macro silt__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set names = silt_snapshot_names() -%}
  merge with schema evolution into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.{{ names.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ names.dbt_scd_id }}
    and {{ silt_snapshot_is_current('DBT_INTERNAL_DEST.' ~ names.dbt_valid_to) }}
  when matched and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
    then update set {{ names.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ names.dbt_valid_to }}
  when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
    then insert ({{ insert_cols | join(', ') }})
    values ({% for column in insert_cols %}DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}


{% macro silt_snapshot_is_current(valid_to) -%}
  {%- set valid_to_current = config.get('dbt_valid_to_current') -%}
  {%- if valid_to_current -%}
    ({{ equals(valid_to, valid_to_current | trim) | trim }} or {{ valid_to }} is null)
  {%- else -%}
    {{ valid_to }} is null
  {%- endif -%}
{%- endmacro %}

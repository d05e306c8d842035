{% materialization incremental, adapter='silt', supported_languages=['sql', 'python'] -%}
  {%- set node = adapter.begin_node('incremental', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set on_schema_change = config.get('on_schema_change') or 'ignore' -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_macro = node.prepared -%}
  {%- set existing_relation = node.existing -%}
  {%- set rebuild = existing_relation is none or not existing_relation.is_table or should_full_refresh() -%}

  {%- if node.done is not none -%}
    {%- do silt_skip(node.done) -%}
  {%- else -%}
    {%- set temp_relation = make_temp_relation(target_relation) -%}
    {%- set query = silt_model_query(temp_relation) -%}
    {%- if not rebuild and config.get('on_missing_changes') == 'full_refresh' -%}
      {%- set rebuild = adapter.must_read_all_rows(model, silt_with_header(query)) -%}
    {%- endif -%}

    {%- if rebuild -%}
      {%- if silt_is_own_strategy(strategy, strategy_macro) -%}
        {%- set warning = adapter.check_first_columns(model['config'], strategy, query, should_full_refresh()) -%}
        {%- if warning -%}
          {%- do exceptions.warn(warning) -%}
        {%- endif -%}
      {%- endif -%}
      {%- call silt_write(node.unit) -%}
        {{ create_table_as(False, target_relation.incorporate(replaces=existing_relation is not none), silt_first_rows(strategy, query)) }}
      {%- endcall -%}
    {%- else -%}
      {%- if model['language'] == 'sql' and not silt_is_own_strategy(strategy, strategy_macro) -%}
        {%- do run_query(create_table_as(True, temp_relation, query)) -%}
      {%- endif -%}
      {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent(query) -%}
      {%- endif -%}
      {%- set columns = silt_follow_schema_change(on_schema_change, query, existing_relation) -%}
      {%- set arguments = {
        'target_relation': target_relation,
        'temp_relation': temp_relation,
        'unique_key': config.get('unique_key'),
        'dest_columns': columns['dest_columns'],
        'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none),
        'query': query,
        'evolve': columns['evolve'],
      } -%}
      {%- set statements = strategy_macro(arguments) -%}
      {%- call silt_write(node.unit, change={'relation': existing_relation, 'query': silt_with_header(query)}) -%}
        {{ statements if statements is string else statements | join(';\n') }}
      {%- endcall -%}
    {%- endif -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, rebuild)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ silt_run_post_hooks(post_hooks, node.runs_later_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{#-- Whether this adapter's strategy is used: its statement contains the model's query. A strategy of the project or of a package
     reads the rows from a temporary view. --#}
{% macro silt_is_own_strategy(strategy, strategy_macro) %}
  {%- set chosen = {
    'append': adapter.dispatch('get_incremental_append_sql', 'dbt'),
    'merge': adapter.dispatch('get_incremental_merge_sql', 'dbt'),
    'delete+insert': adapter.dispatch('get_incremental_delete_insert_sql', 'dbt'),
    'insert_overwrite': adapter.dispatch('get_incremental_insert_overwrite_sql', 'dbt'),
    'replace_where': adapter.dispatch('get_incremental_replace_where_sql', 'dbt'),
    'changed_keys': adapter.dispatch('get_incremental_changed_keys_sql', 'dbt'),
    'microbatch': adapter.dispatch('get_incremental_microbatch_sql', 'dbt'),
    'default': adapter.dispatch('get_incremental_default_sql', 'dbt'),
  } -%}
  {%- set asked = ['default', 'append', 'merge'] if strategy == 'default' else [strategy] -%}
  {%- set macros = [strategy_macro] -%}
  {%- for name in asked if name in chosen -%}
    {%- do macros.append(chosen[name]) -%}
  {%- endfor -%}
  {%- set others = macros | map(attribute='macro.package_name') | reject('in', ['dbt', 'dbt_silt']) | list -%}
  {{ return(strategy in chosen and not others) }}
{% endmacro %}


{#-- The rows of a new table. Rows that are upserts lose their `_change_type`. A row of the first batch of a microbatch model must be in the batch's window, as the statements of
     later batches also require: a row outside of it would be kept, and then doubled by its own batch. --#}
{% macro silt_first_rows(strategy, query) -%}
  {%- if adapter.takes_upserts(query) -%}
    {{ return('select * except (_change_type)\nfrom (\n' ~ query ~ '\n)') }}
  {%- elif strategy != 'microbatch' or not model.batch -%}
    {{ return(query) }}
  {%- endif -%}
  {%- set window = adapter.batch_window(model, adapter.get_column_schema_from_query(query), query) -%}
  {%- set message = 'Rows of batch ' ~ model.batch.id ~ ' are outside of its window, ' ~ window ~ '. ' ~ adapter.batch_remedy() -%}
  select *
  from (
  {{ query }}
  )
  where if(coalesce({{ window }}, false), true, raise_error({{ adapter.string_literal(message) }}))
{%- endmacro %}


{#-- Applies `on_schema_change`. Returns the columns to write (`dest_columns`), and whether the statement itself adds missing
     columns and fields of structs (`evolve`). Applies the definition, drops columns and changes types before the write, because no
     statement can do both, and adds the columns that a merge does not write; this is harmless if the write then fails or is repeated. --#}
{% macro silt_follow_schema_change(on_schema_change, query, target_relation) %}
  {%- set target_columns = adapter.get_columns_in_relation(target_relation) -%}
  {%- set merges = (config.get('incremental_strategy') or 'merge') == 'merge' -%}
  {%- set evolves = merges and config.get('merge_with_schema_evolution') | string | lower == 'true' -%}
  {%- if on_schema_change == 'ignore' and not evolves -%}
    {%- do adapter.name_ignored_columns(model, query, target_columns) -%}
    {%- do silt_follow_definition(target_relation, []) -%}
    {{ return({'dest_columns': target_columns, 'evolve': false}) }}
  {%- endif -%}
  {%- set source_columns = adapter.get_column_schema_from_query(query) -%}
  {%- if adapter.takes_upserts(query) -%}
    {%- set source_columns = source_columns | rejectattr('name', 'equalto', '_change_type') | list -%}
  {%- endif -%}
  {%- set changes = adapter.schema_changes(source_columns, target_columns) -%}
  {%- if on_schema_change == 'fail' and changes['any'] -%}
    {%- do silt_fail_on_schema_change(changes, target_relation) -%}
  {%- endif -%}
  {%- if silt_follow_definition(target_relation, changes['added'] + changes['added_fields']) -%}
    {%- do changes.update(adapter.schema_changes(source_columns, adapter.get_columns_in_relation(target_relation))) -%}
  {%- endif -%}
  {%- if on_schema_change not in ['ignore', 'fail'] -%}
    {%- set syncs = on_schema_change == 'sync_all_columns' -%}
    {#-- Spark has no cast that drops the fields of a struct. --#}
    {%- set fields = changes['added_fields'] if syncs else [] -%}
    {%- set added = changes['added'] if syncs else changes['added'] + changes['added_fields'] -%}
    {%- set unmerged = adapter.not_merged(model['config'], source_columns, added) if merges and added else [] -%}
    {%- set new = unmerged + fields -%}
    {%- set gone = changes['removed_fields'] if syncs else [] -%}
    {%- do silt__alter_relation_add_remove_columns(target_relation, new, (changes['removed'] if syncs else []) + gone) -%}
    {%- if new or gone -%}
      {%- do changes.update(adapter.schema_changes(source_columns, adapter.get_columns_in_relation(target_relation))) -%}
    {%- endif -%}
    {%- for column in changes['retyped'] if syncs -%}
      {%- do alter_column_type(target_relation, column.name, column.data_type) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return({'dest_columns': source_columns, 'evolve': (changes['added'] + changes['retyped']) | length > 0}) }}
{% endmacro %}


{#-- Updates the clustering, properties and constraints of an existing table to the project's, but only if they differ, so that a run
     without such changes makes no commit. Called before the write, which must then satisfy the new constraints, and before columns are
     dropped, because the table may be clustered by them. The write would add the columns and fields in `added`. Returns whether the
     table was changed. --#}
{% macro silt_follow_definition(relation, added) %}
  {%- set changes = adapter.definition_changes(model, relation, added) -%}
  {%- for change in changes -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} {{ change }}
    {%- endcall -%}
  {%- endfor -%}
  {{ return(changes | length > 0) }}
{% endmacro %}


{% macro silt_fail_on_schema_change(changes, target_relation) %}
  {%- set message -%}
    The source and target schemas on this incremental model are out of sync!
    They can be reconciled in several ways:
      - set the `on_schema_change` config to either append_new_columns or sync_all_columns, depending on your situation.
      - Re-run the incremental model with `--full-refresh` to update the target schema.
      - update the schema manually and re-run the process.

    Additional troubleshooting context, of {{ target_relation.render() | replace('`', '') }}:
       Source columns not in target: {{ silt_listed_columns(changes['added']) }}
       Target columns not in source: {{ silt_listed_columns(changes['removed']) }}
       New column types: {{ silt_listed_columns(changes['retyped']) }}
  {%- endset -%}
  {%- do exceptions.raise_compiler_error(message) -%}
{% endmacro %}


{#-- Lists columns with their types for a message. --#}
{% macro silt_listed_columns(columns) -%}
  {%- for column in columns -%}
    {{ column.quoted }} {{ column.dtype }}{{ ', ' if not loop.last }}
  {%- else -%}
    none
  {%- endfor -%}
{%- endmacro %}

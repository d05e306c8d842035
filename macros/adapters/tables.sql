{#-- Creates a table in one statement, and so in one commit, with its comment, column comments, constraints, partitioning and
     properties. --#}
{% macro silt__create_table_as(temporary, relation, sql) -%}
  {%- if temporary -%}
    create or replace temporary view {{ relation }} as
    {{ sql }}
  {%- elif config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
    {%- set elements = adapter.table_elements(model, config.persist_column_docs()) -%}
    {{ silt_create_table(relation, get_select_subquery(sql), elements | join(',\n    ')) }}
  {%- else -%}
    {{ silt_create_table(relation, sql, silt_documented_columns(sql)) }}
  {%- endif -%}
{%- endmacro %}


{% macro silt_create_table(relation, sql, columns='') -%}
  create {{ silt_or_replace(relation) }}table {{ relation }}
  {%- if columns | trim %} (
    {{ columns | trim }}
  ){% endif %}
  {{- silt_comment_clause() }}
  {{- silt_partition_clause() }}
  {{- silt_cluster_clause() }}
  {{- silt_properties_clause() }}
  {{- silt_changed_keys_clause() }}
  {{- silt_differences_clause() }}
  as
  {{ sql }}
{%- endmacro %}


{#-- The table of the strategy `changed_keys` records which changes of its inputs it contains. --#}
{% macro silt_changed_keys_clause() -%}
  {%- if model.config.materialized == 'incremental' and config.get('incremental_strategy') == 'changed_keys' and not flags.EMPTY %}
  {{ adapter.changed_keys_clause(model) }}
  {%- endif -%}
{%- endmacro %}


{#-- With `write: differences`, a table is replaced by the rows that differ from its own. --#}
{% macro silt_differences_clause() -%}
  {%- if model.config.materialized == 'table' and config.get('write') == 'differences' and not should_full_refresh() %}
  write differences by (
    {%- for column in silt_list(config.get('unique_key')) %}{{ adapter.quoted_name(column) }}{{ ', ' if not loop.last }}{% endfor -%}
  )
  {%- endif -%}
{%- endmacro %}


{#-- `create or replace` only if the table was found before: if another run has created it since, `create` fails, but
     `or replace` would silently discard that run's rows. A materialization that has looked sets `replaces`, because the
     cache may now contain a table that another thread has created since, unknown to this node's query. --#}
{% macro silt_or_replace(relation) -%}
  {%- set seen = (load_cached_relation(relation) is not none) if (relation.replaces is none) else relation.replaces -%}
  {{ 'or replace ' if seen }}
{%- endmacro %}


{% macro silt_comment_clause() -%}
  {%- if config.persist_relation_docs() and model.description %}
  comment {{ adapter.string_literal(model.description) }}
  {%- endif -%}
{%- endmacro %}


{% macro silt_partition_clause() -%}
  {%- set columns = adapter.partitioning(config.get('partition_by')).columns -%}
  {%- if columns %}
  partitioned by ({% for column in columns %}{{ adapter.quote(column) }}{{ ', ' if not loop.last }}{% endfor %})
  {%- endif -%}
{%- endmacro %}


{% macro silt_cluster_clause() -%}
  {%- set columns = adapter.clustering(model.config).columns -%}
  {%- if columns %}
  cluster by ({{ columns | join(', ') }})
  {%- endif -%}
{%- endmacro %}


{#-- A rerun recognises completed work by transaction identifiers, so they are kept long enough for any rerun. --#}
{% macro silt_properties_clause() -%}
  {%- set properties = {'delta.setTransactionRetentionDuration': 'interval 90 days'} -%}
  {%- do properties.update(config.get('tblproperties') or {}) %}
  tblproperties (
  {%- for name, value in properties.items() %}
    {{ adapter.string_literal(name) }} = {{ adapter.string_literal(value | string) }}{{ ',' if not loop.last }}
  {%- endfor %}
  )
{%- endmacro %}


{% macro silt__make_temp_relation(base_relation, suffix='__dbt_tmp') %}
  {{ return(api.Relation.create(identifier=base_relation.identifier ~ suffix, type='view')) }}
{% endmacro %}


{% macro silt__truncate_relation(relation) -%}
  {%- call statement('truncate_relation') -%}
    truncate table {{ relation.render() }}
  {%- endcall -%}
{%- endmacro %}


{% macro silt__create_view_as(relation, sql) -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif -%}
  {%- set columns = silt_documented_columns(sql, with_fields=true) | trim -%}
  create or replace view {{ relation }}
  {%- if columns %} (
    {{ columns }}
  ){% endif %}
  {{- silt_comment_clause() }}
  as
  {{ sql }}
{%- endmacro %}


{% macro silt__generate_database_name(custom_database_name=none, node=none) -%}
  {{ return(default__generate_database_name(custom_database_name, node) | trim) }}
{%- endmacro %}

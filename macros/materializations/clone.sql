{#-- Like dbt's own, with the clone as a unit of work: a rerun skips a finished clone, reports it, and still sets the
     documentation. Views, and all nodes of a project whose `can_clone_table` returns false, become views of the other
     environment's relation. --#}
{% materialization clone, adapter='silt' %}
  {%- set node = adapter.begin_node('clone', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- if not defer_relation -%}
    {{ log("No relation found in state manifest for " ~ model.unique_id, info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set existing_relation = node.existing -%}
  {%- if existing_relation is not none and not flags.FULL_REFRESH and node.done is none -%}
    {{ log("Relation " ~ existing_relation ~ " already exists", info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set source = load_cached_relation(defer_relation) -%}
  {%- if not (source is not none and source.is_table and can_clone_table()) -%}
    {{ return(silt_clone_as_view(source)) }}
  {%- endif -%}

  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if target_relation == source -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ target_relation) }}
  {%- elif node.done is not none -%}
    {%- do silt_skip(node.done) -%}
  {%- else -%}
    {%- call silt_write(node.unit) -%}
      {{ create_or_replace_clone(target_relation.incorporate(replaces=existing_relation is not none), source) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#-- dbt passes the query that reads the other relation as `sql`, but only for SQL models. --#}
{% macro silt_clone_as_view(source) %}
  {%- if sql is none -%}
    {%- do exceptions.raise_compiler_error(
      "there is nothing to clone: " ~ defer_relation ~ " is not a table" ~
      (" of this project's warehouses; build it there first" if source is none else "; build it there as a table")
    ) -%}
  {%- endif -%}
  {{ return(materialization_view_silt()) }}
{% endmacro %}


{% macro silt__can_clone_table() %}
  {{ return(True) }}
{% endmacro %}


{#-- The clone refers to its source's files instead of copying them. --#}
{% macro silt__create_or_replace_clone(this_relation, defer_relation) -%}
  create {{ silt_or_replace(this_relation) }}table {{ this_relation }} shallow clone {{ defer_relation }}
{%- endmacro %}

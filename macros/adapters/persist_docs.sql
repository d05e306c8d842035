{#-- Sets the comments of an existing table, but only comments that differ, so that a run without changed documentation makes no
     commit. New tables and all views get their comments when they are created. --#}
{% macro silt__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if relation.is_table -%}
    {%- if for_relation and config.persist_relation_docs()
        and (adapter.relation_comment(relation) or '') != (model.description or '') -%}
      {%- call statement() -%}
        comment on table {{ relation.render() }} is {{ adapter.string_literal(model.description or '') }}
      {%- endcall -%}
    {%- endif -%}
    {%- if for_columns and config.persist_column_docs() and model.columns -%}
      {%- do silt_comment_columns(relation) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}


{% macro silt_comment_columns(relation) %}
  {%- set changes = adapter.comment_changes(adapter.get_columns_in_relation(relation), model.columns) -%}
  {%- if changes -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} alter column {{ changes | join(', ') }}
    {%- endcall -%}
  {%- endif -%}
{% endmacro %}

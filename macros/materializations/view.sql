{#-- It accepts python models only to refuse them by name: dbt's own error names this macro. --#}
{% materialization view, adapter='silt', supported_languages=['sql', 'python'] %}
  {%- set node = adapter.begin_node('view', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {%- set existing_relation = node.existing -%}

  {%- if node.done is not none -%}
    {%- do silt_skip(node.done) -%}
  {%- else -%}
    {%- call silt_write_view(existing_relation) -%}
      {{ get_create_view_as_sql(target_relation, adapter.one_query(sql)) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}

  {{ silt_run_post_hooks(post_hooks, node.runs_later_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

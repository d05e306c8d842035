{% materialization table, adapter='silt', supported_languages=['sql', 'python'] %}
  {%- set node = adapter.begin_node('table', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = node.existing -%}

  {%- if node.done is not none -%}
    {%- do silt_skip(node.done) -%}
  {%- else -%}
    {%- set query = silt_model_query(make_temp_relation(target_relation)) -%}
    {%- call silt_write(node.unit) -%}
      {{ create_table_as(False, target_relation.incorporate(replaces=existing_relation is not none), query) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ silt_run_post_hooks(post_hooks, node.runs_later_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

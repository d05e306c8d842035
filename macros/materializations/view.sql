{% materialization view, adapter='silt' %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set existing_relation = load_cached_relation(this) -%}

  {{ silt_run_pre_hooks(pre_hooks) }}

  {%- if existing_relation is not none and not existing_relation.is_view -%}
    {{ handle_existing_table(should_full_refresh(), existing_relation) }}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, sql) }}
  {%- endcall -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}

  {{ silt_run_post_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{#-- It accepts python models only to refuse them by name: dbt's own error names this macro. --#}
{% materialization view, adapter='silt', supported_languages=['sql', 'python'] %}
  {%- set other = silt_other_materialization('view') -%}
  {%- if other is not none -%}
    {{ return(other()) }}
  {%- endif -%}
  {%- do silt_begin() -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ silt_run_pre_hooks(pre_hooks) }}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- do silt_warn_of_losses(existing_relation, target_relation) -%}

  {%- call silt_write_view(existing_relation) -%}
    {{ get_create_view_as_sql(target_relation, adapter.one_query(sql)) }}
  {%- endcall -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}

  {{ silt_run_post_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

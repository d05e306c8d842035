{% materialization table, adapter='silt', supported_languages=['sql', 'python'] %}
  {%- set other = silt_other_materialization('table') -%}
  {%- if other is not none -%}
    {{ return(other()) }}
  {%- endif -%}
  {%- do silt_begin() -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set unit = adapter.main_unit(model, should_full_refresh()) -%}
  {%- set reused = silt_reuse(pre_hooks, unit, target_relation, should_full_refresh()) -%}

  {%- set existing_relation = load_cached_relation(this) -%}

  {%- set earlier = adapter.earlier_result(unit, target_relation) if reused is none else reused -%}
  {%- if earlier is not none -%}
    {%- do silt_skip(earlier) -%}
  {%- else -%}
    {%- do silt_warn_of_losses(existing_relation, target_relation) -%}
    {%- set query = silt_model_query(make_temp_relation(target_relation)) -%}
    {%- call silt_write(unit) -%}
      {{ create_table_as(False, target_relation.incorporate(replaces=existing_relation is not none), query) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ silt_run_post_hooks(post_hooks, reused) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

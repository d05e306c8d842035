{#-- Writes the model's rows to a file or folder outside of the warehouse (`location`, with `format`, `options` and
     `partition_by`), and creates a view that reads them. A rerun writes the same location again, completely or not at all. --#}
{% materialization external, adapter='silt', supported_languages=['sql', 'python'] %}
  {%- set other = silt_other_materialization('external') -%}
  {%- if other is not none -%}
    {{ return(other()) }}
  {%- endif -%}
  {%- do silt_begin() -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set target = adapter.external_target(model, render(config.get('location') or '')) -%}

  {{ silt_run_pre_hooks(pre_hooks) }}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- do silt_warn_of_losses(existing_relation, target_relation) -%}

  {%- set query = silt_model_query(make_temp_relation(target_relation)) -%}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(query) -%}
  {%- endif -%}
  {{ write(query) }}
  {%- set written = adapter.write_external(query, config.get('sql_header'), target) -%}

  {%- do adapter.write_view(get_create_view_as_sql(target_relation, written.query), existing_relation) -%}
  {%- do store_result('main', response=written.response) -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}

  {{ silt_run_post_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

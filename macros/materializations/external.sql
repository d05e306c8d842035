{#-- Writes the model's rows to a file or folder outside of the warehouse (`location`, with `format`, `options` and
     `partition_by`), and creates a view that reads them. A rerun writes the same location again, completely or not at all. --#}
{% materialization external, adapter='silt', supported_languages=['sql', 'python'] %}
  {%- set node = adapter.begin_node('external', context) -%}
  {%- if node.other is not none -%}
    {{ return(node.other()) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {%- set existing_relation = node.existing -%}

  {%- set query = silt_model_query(make_temp_relation(target_relation)) -%}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(query) -%}
  {%- endif -%}
  {{ write(query) }}
  {%- set written = adapter.write_external(query, config.get('sql_header'), node.prepared) -%}

  {%- do adapter.write_view(get_create_view_as_sql(target_relation, written.query), existing_relation) -%}
  {%- do store_result('main', response=written.response) -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, True)) -%}

  {{ silt_run_post_hooks(post_hooks, node.runs_later_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

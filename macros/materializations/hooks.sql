{#-- Like dbt's own, but without `commit` (a transaction has only one statement), and with each statement of a hook as a
     separate unit of work: a rerun does not repeat the statements that ran before a failure. --#}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {%- set role = 'pre_hook' if hooks is sameas(pre_hooks) else 'post_hook' -%}
  {%- for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) -%}
    {%- do adapter.enter_hook(model, role, this, should_full_refresh()) -%}
    {%- set rendered = render(hook.get('sql')) | trim -%}
    {%- if (rendered | length) > 0 -%}
      {%- call statement(auto_begin=inside_transaction) -%}
        {{ rendered }}
      {%- endcall -%}
    {%- endif -%}
    {%- do adapter.leave_hook() -%}
  {%- endfor -%}
{% endmacro %}


{#-- Called at the beginning of the materializations. --#}
{% macro silt_run_pre_hooks(hooks) %}
  {%- do adapter.begin_own_materialization() -%}
  {%- do silt_check_configs() -%}
  {{ run_hooks(hooks, inside_transaction=False) }}
  {{ run_hooks(hooks, inside_transaction=True) }}
{% endmacro %}


{% macro silt_run_post_hooks(hooks) %}
  {{ run_hooks(hooks, inside_transaction=True) }}
  {{ run_hooks(hooks, inside_transaction=False) }}
{% endmacro %}

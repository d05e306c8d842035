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


{% macro silt_run_pre_hooks(hooks) %}
  {%- do run_hooks(hooks, inside_transaction=False) -%}
  {%- do run_hooks(hooks, inside_transaction=True) -%}
{% endmacro %}


{% macro silt_run_post_hooks(hooks, wanted=true) %}
  {%- if wanted -%}
    {{ run_hooks(hooks, inside_transaction=True) }}
    {{ run_hooks(hooks, inside_transaction=False) }}
    {%- do silt_run_after_publish(config.get('after_publish')) -%}
    {%- do adapter.end_hooks() -%}
  {%- endif -%}
{% endmacro %}


{#-- Leaves the statements of the config to the end of a run that is published; otherwise runs them as post-hooks. --#}
{% macro silt_run_after_publish(given) %}
  {%- for text in ([given] if given is string else (given or [])) -%}
    {%- set rendered = render(text) | trim -%}
    {%- if (rendered | length) > 0 and not adapter.add_later(model, rendered) -%}
      {%- do adapter.enter_hook(model, 'after_publish', this, should_full_refresh()) -%}
      {%- call statement() -%}
        {{ rendered }}
      {%- endcall -%}
      {%- do adapter.leave_hook() -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{#-- In a hook, such as one of `on-run-end`: leaves the statement to the end of a run that is published; the hook runs it
     otherwise. --#}
{% macro silt_after_publish(sql) %}
  {%- if model is not defined or model['resource_type'] == 'macro' -%}
    {%- do exceptions.raise_compiler_error('silt_after_publish is for hooks; an operation runs its statements at once') -%}
  {%- endif -%}
  {{ return('' if execute and adapter.add_later(model, sql) else sql) }}
{% endmacro %}

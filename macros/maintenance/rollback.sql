{#-- Undoes all changes of a run, like the command `silt rollback`, and prints them:

       dbt run-operation silt_rollback --args '{run_id: "2026-03-01"}'

     `exclude`: a table, or a list of tables, to leave unchanged. Refused in hooks: the run in progress cannot be undone. --#}
{% macro silt_rollback(run_id, dry_run=false, discard_later_commits=false, drop_created=false, exclude=none) %}
  {%- if model is defined and model['resource_type'] != 'macro' -%}
    {%- do exceptions.raise_compiler_error('silt_rollback is an operation: run it with `dbt run-operation`, outside of runs') -%}
  {%- endif -%}
  {%- if execute -%}
    {%- do print(adapter.roll_back(
      run_id,
      dry_run=dry_run,
      discard_later_commits=discard_later_commits,
      drop_created=drop_created,
      exclude=exclude
    )) -%}
  {%- endif -%}
{% endmacro %}

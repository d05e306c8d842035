{#-- Reads the changes of a `ref` or `source` that this incremental model has not read yet, each once: `from {{ silt_changes(ref('orders')) }}`.
     The first build and `--full-refresh` read all rows as inserts. `as='upserts'`: the newest row of each changed key, for the strategy
     merge, which also deletes the keys that are gone; the query must return `_change_type`, which is not a column of the table. `key`: a
     column or a list of columns of the input, by default `unique_key`. `after`: the version with which a table begins that has rows but
     has read no changes. --#}
{% macro silt_changes(relation, as=none, key=none, after=none) %}
  {{- return(adapter.changes_call(model, relation, this, as, key or config.get('unique_key'), after)) -}}
{% endmacro %}

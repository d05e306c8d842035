{# A change that is read twice adds its row twice; a change that is never read leaves its row out. #}
{{ config(materialized='incremental', incremental_strategy='append', tblproperties={'delta.checkpointInterval': '2'}) }}
select part, round, amount, _change_type as change, _commit_version as version from {{ silt_changes(ref('as_table')) }}

{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, amount, round, _change_type from {{ silt_changes(ref('as_merge'), as='upserts') }}

{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id',
    tblproperties={'delta.enableDeletionVectors': 'true', 'delta.checkpointInterval': '2'},
) }}
select * from {{ ref('events') }}

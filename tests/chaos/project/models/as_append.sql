{{ config(materialized='incremental', incremental_strategy='append', tblproperties={'delta.checkpointInterval': '2'}) }}
select * from {{ ref('events') }}

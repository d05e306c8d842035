{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='part') }}
select * from {{ ref('events') }} where part <> {{ var('round') }}

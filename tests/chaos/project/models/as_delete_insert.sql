{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='part') }}
select * from {{ ref('events') }} where part in ({{ var('round') }}, 3)

{{ config(materialized='incremental', incremental_strategy='two_steps') }}
select * from {{ ref('events') }} where part < 2

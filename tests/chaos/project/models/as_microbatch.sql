{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='changed_at', batch_size='day',
    begin='2024-01-01', concurrent_batches=true, tblproperties={'delta.checkpointInterval': '2'},
    post_hook="insert into {{ target.schema }}.audit values ('last batch', " ~ var('round') ~ ")",
) }}
select * from {{ ref('events') }}

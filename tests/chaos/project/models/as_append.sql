{{ config(
    materialized='incremental',
    incremental_strategy='append',
    tblproperties={'delta.checkpointInterval': '2'},
    post_hook="select raise_error('this hook was told to fail') where '{{ env_var('CHAOS_FAILING', '') }}' = 'yes'",
) }}
select * from {{ ref('events') }}

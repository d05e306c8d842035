{{ config(
    materialized='incremental',
    incremental_strategy='append',
    pre_hook="{% if is_incremental() %}insert into {{ this }} select -1L, -1, 0.5, {{ var('round', 1) }}, null{% endif %}",
    post_hook="insert into {{ this }} select -2L, -2, 1.5, {{ var('round', 1) }}, null",
) }}
select * from {{ ref('events') }}

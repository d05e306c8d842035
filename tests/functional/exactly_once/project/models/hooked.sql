{{ config(
    materialized='incremental',
    incremental_strategy='append',
    pre_hook="insert into {{ ref('as_append') }} select -1L, -1, 0.5, {{ var('round', 1) }}, null",
    post_hook="insert into {{ this }} select -2L, -2, 1.5, {{ var('round', 1) }}, null",
) }}
-- depends_on: {{ ref('as_append') }}
select * from {{ ref('events') }}

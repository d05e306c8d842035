-- Weather observations are never corrected, so new rows are appended.
{{ config(
    materialized='incremental',
    incremental_strategy='append'
) }}

select * from {{ ref('stg_weather') }}
{% if is_incremental() %}
where landed_at > (select max(landed_at) from {{ this }})
{% endif %}

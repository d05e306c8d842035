-- One partition per month. The query's partitions replace the partitions of the table; other months are unchanged.
{{ config(
    materialized='incremental',
    incremental_strategy='insert_overwrite',
    partition_by=['flight_month']
) }}

select
    origin,
    dest,
    count(*) as flights,
    count_if(is_cancelled) as cancelled,
    round(avg(arr_delay), 2) as mean_arr_delay,
    max(landed_at) as landed_at,
    cast(trunc(flight_date, 'month') as date) as flight_month
from {{ ref('flights') }}
{% if is_incremental() %}
where trunc(flight_date, 'month') in (
    select trunc(flight_date, 'month') from {{ ref('flights') }}
    where landed_at > (select max(landed_at) from {{ this }})
)
{% endif %}
group by origin, dest, flight_month

-- One row per flight. The merge updates a flight that lands again because its arrival was corrected, and inserts a
-- flight that lands late.
{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key=['scheduled_hour', 'carrier', 'flight_number']
) }}

with landed as (
    select * from {{ ref('stg_flights') }}
    {% if is_incremental() %}
    where landed_at > (select max(landed_at) from {{ this }})
    {% endif %}
),

ranked as (
    select
        *,
        row_number() over (
            partition by scheduled_hour, carrier, flight_number order by landed_at desc
        ) as age
    from landed
)

select
    scheduled_hour,
    carrier,
    flight_number,
    flight_date,
    origin,
    dest,
    tailnum,
    dep_delay,
    arr_delay,
    air_minutes,
    distance_miles,
    is_cancelled,
    landed_at
from ranked
where age = 1

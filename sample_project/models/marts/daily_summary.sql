-- One row per day and airport. A day with new or changed flights is summarised again: one commit deletes its old rows and
-- inserts its new rows, so no reader ever misses the day.
{{ config(
    materialized='incremental',
    incremental_strategy='delete+insert',
    unique_key='flight_date'
) }}

select
    flight_date,
    origin,
    count(*) as flights,
    count_if(is_cancelled) as cancelled,
    count_if(arr_delay > 15) as late_arrivals,
    round(avg(arr_delay), 2) as mean_arr_delay,
    max(landed_at) as landed_at
from {{ ref('flights') }}
{% if is_incremental() %}
where flight_date in (
    select flight_date from {{ ref('flights') }}
    where landed_at > (select max(landed_at) from {{ this }})
)
{% endif %}
group by flight_date, origin

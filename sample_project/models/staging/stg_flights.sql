select
    time_hour as scheduled_hour,
    carrier,
    flight as flight_number,
    make_date(year, month, day) as flight_date,
    origin,
    dest,
    tailnum,
    dep_delay,
    arr_delay,
    air_time as air_minutes,
    distance as distance_miles,
    dep_delay is null as is_cancelled,
    landed_at
from {{ landed('flights') }}

select
    origin,
    time_hour as observed_at,
    round((temp - 32) * 5 / 9, 1) as temperature_celsius,
    humid as humidity_percent,
    wind_speed as wind_mph,
    precip as precipitation_inches,
    visib as visibility_miles,
    landed_at
from {{ landed('weather') }}

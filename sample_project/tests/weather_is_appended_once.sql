select origin, observed_at
from {{ ref('weather_observations') }}
group by origin, observed_at
having count(*) > 1

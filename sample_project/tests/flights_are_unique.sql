select scheduled_hour, carrier, flight_number
from {{ ref('flights') }}
group by scheduled_hour, carrier, flight_number
having count(*) > 1

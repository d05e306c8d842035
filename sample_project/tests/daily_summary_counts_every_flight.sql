select flight_date
from (
    select flight_date, sum(flights) as flights from {{ ref('daily_summary') }} group by flight_date
) as summed
full join (
    select flight_date, count(*) as flights from {{ ref('flights') }} group by flight_date
) as counted using (flight_date)
where summed.flights is distinct from counted.flights

select flight_month
from (
    select flight_month, sum(flights) as flights from {{ ref('route_performance') }} group by flight_month
) as summed
full join (
    select cast(trunc(flight_date, 'month') as date) as flight_month, count(*) as flights
    from {{ ref('flights') }}
    group by flight_month
) as counted using (flight_month)
where summed.flights is distinct from counted.flights

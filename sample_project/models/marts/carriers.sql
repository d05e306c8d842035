-- Small enough to be replaced in every run.
select
    airlines.carrier,
    airlines.name,
    count(flights.flight_number) as flights,
    count_if(flights.is_cancelled) as cancelled,
    round(avg(flights.arr_delay), 2) as mean_arr_delay
from {{ ref('airlines') }} as airlines
left join {{ ref('flights') }} as flights on flights.carrier = airlines.carrier
group by airlines.carrier, airlines.name

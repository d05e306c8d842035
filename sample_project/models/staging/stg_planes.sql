-- Each file is the whole register: only the newest counts.
select
    tailnum,
    manufacturer,
    model,
    year as built_in,
    engines,
    seats,
    updated_at
from {{ landed('planes') }}
where landed_at = (select max(landed_at) from {{ landed('planes') }})

-- Each file is the complete register, so only the latest file is used.
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

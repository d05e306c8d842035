select tailnum
from {{ ref('planes_history') }}
where dbt_valid_to is null
group by tailnum
having count(*) > 1

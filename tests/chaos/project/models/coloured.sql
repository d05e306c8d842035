{{ config(materialized='ephemeral') }}
select e.id, e.part, e.amount, e.round, c.colour
from {{ ref('events') }} e
left join {{ ref('colours') }} c on c.id = e.part

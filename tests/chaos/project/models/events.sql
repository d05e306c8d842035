{# Round 1 holds the ids 0 to 59, round 2 the ids 30 to 89: half of it again, changed, and half new. Each round's rows lie on
   four days, the first a day after that of the round before. #}
{{ config(materialized='view', event_time='changed_at') }}
{% set round = var('round') | int %}
select
    cast(id as bigint) as id,
    cast(id % 4 as int) as part,
    cast(id * 10 + {{ round }} as decimal(12, 2)) as amount,
    cast({{ round }} as int) as round,
    timestamp '2024-01-01 06:00:00' + make_interval(0, 0, 0, cast({{ round }} + id % 4 as int)) as changed_at
from range({{ (round - 1) * 30 }}, {{ (round - 1) * 30 + 60 }})

select part, count(*) as events, sum(amount) as amount from {{ ref('events') }} group by part

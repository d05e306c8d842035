select part, round, colour, count(*) as events, sum(amount) as amount from {{ ref('coloured') }} group by all

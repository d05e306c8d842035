{# Reads what others have written, through a view too: a run that is continued reads the same as one that was not disturbed. #}
select 'appended' as what, round, count(*) as rows, sum(amount) as amount from {{ ref('appended_view') }} group by round
union all
select 'hooked', round, count(*), sum(amount) from {{ ref('hooked') }} group by round
union all
select 'batches', round, count(*), sum(amount) from {{ ref('as_microbatch') }} group by round

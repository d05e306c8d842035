{{ config(
    materialized='incremental',
    incremental_strategy='append',
    tblproperties={'delta.checkpointInterval': '2'},
    pre_hook=[
        "insert into {{ target.schema }}.audit values ('hooked before', {{ var('round') }})",
        "insert into {{ ref('as_append') }} select -1L, -1, 0.5, {{ var('round') }}, null",
    ],
    post_hook=[
        "insert into {{ this }} select -2L, -2, 1.5, {{ var('round') }}, null",
        "merge into {{ target.schema }}.tally t using (select 'hooked' as name) s on t.name = s.name
         when matched then update set times = times + 1
         when not matched then insert (name, times) values (s.name, 1)",
        "delete from {{ this }} where id = {{ var('round') }}",
        "update {{ target.schema }}.tally set times = times + 10 where name = 'hooked'",
    ],
) }}
-- depends_on: {{ ref('as_append') }}
select * from {{ ref('events') }}

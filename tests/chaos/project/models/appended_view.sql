{{ config(materialized='view') }}
-- depends_on: {{ ref('hooked') }}
select * from {{ ref('as_append') }}

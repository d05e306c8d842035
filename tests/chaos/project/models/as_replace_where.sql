{{ config(
    materialized='incremental', incremental_strategy='replace_where', incremental_predicates=['part < ' ~ var('round')],
) }}
select * from {{ ref('events') }} {% if is_incremental() %}where part < {{ var('round') }}{% endif %}

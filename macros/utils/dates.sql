{% macro silt__dateadd(datepart, interval, from_date_or_timestamp) -%}
  timestampadd({{ datepart }}, {{ interval }}, {{ from_date_or_timestamp }})
{%- endmacro %}


{#-- Counts the boundaries of the date part between the two dates, so both are truncated first. Weeks begin on Sunday, as in
     dbt's other adapters. --#}
{% macro silt__datediff(first_date, second_date, datepart) -%}
  {%- if datepart | lower == 'week' -%}
    timestampdiff(day, {{ silt_sunday(first_date) }}, {{ silt_sunday(second_date) }}) div 7
  {%- else -%}
    timestampdiff({{ datepart }}, date_trunc('{{ datepart }}', {{ first_date }}), date_trunc('{{ datepart }}', {{ second_date }}))
  {%- endif -%}
{%- endmacro %}


{% macro silt_sunday(date) -%}
  date_sub(to_date({{ date }}), dayofweek(to_date({{ date }})) - 1)
{%- endmacro %}


{#-- Returns the integers from 1 with one function; dbt's default uses many cross joins and returns doubles. --#}
{% macro silt__generate_series(upper_bound) %}
  {%- if upper_bound <= 0 -%}
    {{ exceptions.raise_compiler_error("upper bound must be positive") }}
  {%- endif -%}
  select explode(sequence(1, {{ upper_bound }})) as generated_number
{% endmacro %}

{% macro silt__dateadd(datepart, interval, from_date_or_timestamp) -%}
  {%- do silt_check_date_part(datepart, 'dbt.dateadd(datepart, interval, from_date_or_timestamp)', ['dayofyear']) -%}
  timestampadd({{ datepart }}, {{ interval }}, {{ from_date_or_timestamp }})
{%- endmacro %}


{#-- Counts the boundaries of the date part between the two dates, so both are truncated first. Weeks begin on Sunday, as in
     dbt's other adapters. --#}
{% macro silt__datediff(first_date, second_date, datepart) -%}
  {%- do silt_check_date_part(datepart, 'dbt.datediff(first_date, second_date, datepart)') -%}
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


{#-- Spark returns nulls for an unknown date part. --#}
{% macro silt__date_trunc(datepart, date) -%}
  {%- do silt_check_date_part(datepart, 'dbt.date_trunc(datepart, date)', ['yyyy', 'yy', 'mon', 'mm', 'dd']) -%}
  date_trunc('{{ datepart }}', {{ date }})
{%- endmacro %}


{#-- Refuses anything but a date part, such as an argument of a call in the order of another warehouse's function. --#}
{% macro silt_check_date_part(datepart, call, more=[]) -%}
  {%- set known = ['year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second', 'millisecond', 'microsecond'] -%}
  {%- if execute and datepart | lower not in known + more -%}
    {%- do exceptions.raise_compiler_error(
      "`" ~ datepart ~ "` is not a date part. Write " ~ call ~ ", where `datepart` is one of " ~ known | join(', ')
    ) -%}
  {%- endif -%}
{%- endmacro %}

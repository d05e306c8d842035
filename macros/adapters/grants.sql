{#-- A warehouse has no users: anyone who can write the folder can write the table. Warns once per command. --#}
{% macro silt__apply_grants(relation, grant_config, should_revoke=True) %}
  {%- if grant_config and adapter.first_time('grants') -%}
    {%- do exceptions.warn(
      "silt does not support grants: the grants of " ~ relation ~ " and of all other nodes are not applied;"
      " give access to the warehouse's folder instead"
    ) -%}
  {%- endif -%}
{% endmacro %}


{% macro silt__copy_grants() %}
  {{ return(False) }}
{% endmacro %}

{#-- There are no users to grant anything to: whoever can write the folder can write the table. Said once in a command. --#}
{% macro silt__apply_grants(relation, grant_config, should_revoke=True) %}
  {%- if grant_config and adapter.first_time('grants') -%}
    {%- do exceptions.warn(
      "silt has no grants: those of " ~ relation ~ ", and of every other node, are not applied;"
      " give access to the warehouse's folder instead"
    ) -%}
  {%- endif -%}
{% endmacro %}


{% macro silt__copy_grants() %}
  {{ return(False) }}
{% endmacro %}

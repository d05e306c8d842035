{#-- The query that returns a model's rows. For a Python model, this runs its code, which puts the rows into a temporary view. --#}
{% macro silt_model_query(view) %}
  {%- if model['language'] == 'sql' -%}
    {{ return(adapter.one_query(sql)) }}
  {%- endif -%}
  {%- call statement('python_model', language='python') -%}
    {{ silt_python_code(compiled_code, view) }}
  {%- endcall -%}
  {{ return('select * from ' ~ view) }}
{% endmacro %}


{#-- A Python model's code, with the name of the temporary view that the model's statement then reads. For a microbatch, also a
     query for each input, because dbt's own `ref` for Python models omits the batch's filter. --#}
{% macro silt_python_code(compiled_code, view) -%}
{{ compiled_code }}

__silt_view__ = {{ view | string | tojson }}
__silt_batch__ = {{ silt_batch_inputs() | tojson }}
{%- endmacro %}


{% macro silt_batch_inputs() %}
  {%- set filtered = {} -%}
  {%- set inputs = [] -%}
  {%- if model.batch -%}
    {%- for each in model.refs -%}
      {%- set names = [each.get('package'), each['name']] if each.get('package') else [each['name']] -%}
      {%- do inputs.append(ref(*names, v=each.get('version'))) -%}
    {%- endfor -%}
    {%- for each in model.sources -%}
      {%- do inputs.append(source(*each)) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for relation in inputs if relation.event_time_filter is defined and relation.event_time_filter -%}
    {%- do filtered.update({relation.render(): relation.render_event_time_filtered()}) -%}
  {%- endfor -%}
  {{ return(filtered) }}
{% endmacro %}

"""Generates JSON schemas with which editors complete and check `profiles.yml` and the configs of models.

They are generated from the same classes as the reference pages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.impl import SiltConfig
from dbt.adapters.silt.materializations.incremental.config import IncrementalConfig
from docs.configs_page import DBT_CONFIGS
from docs.markdown import described_attributes, kinds_of, sentence

Schema = dict[str, Any]
_DIALECT = "http://json-schema.org/draft-07/schema#"
_JINJA: Schema = {"type": "string", "pattern": r"\{\{"}
_KINDS = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "true or false": {"type": "boolean"},
    "list": {"type": "array"},
    "mapping": {"type": "object"},
}
_OFF: Schema = {"const": False}
"""`off` and `no` are false in YAML."""


def profile_schema() -> str:
    """Returns the schema of a `profiles.yml`, which checks only targets of type `silt`."""
    target = _object(SiltCredentials, described_attributes(SiltCredentials))
    own = target["properties"]
    own["type"] = {"const": "silt"}
    own["threads"] = {
        "anyOf": [{"type": "integer", "minimum": 1}, _JINJA],
        "description": "How many nodes run in parallel.",
    }
    own["isolation_level"] = {
        **own["isolation_level"],
        "anyOf": [{"enum": [each.value for each in IsolationLevel]}, _JINJA],
    }
    own["run_id"]["anyOf"].append({"type": "number"})
    for name in ("resume", "keep_alive"):
        own[name]["anyOf"].append(_OFF)
    own["storage"] = {
        **_object(StorageSettings, described_attributes(StorageSettings)),
        "description": own["storage"]["description"],
    }
    of_silt = {
        "if": {"properties": {"type": {"const": "silt"}}, "required": ["type"]},
        "then": {"$ref": "#/definitions/silt"},
    }
    outputs = {"type": "object", "additionalProperties": {"type": "object", "required": ["type"], **of_silt}}
    profile = {"type": "object", "properties": {"target": {"type": "string"}, "outputs": outputs}}
    return _text(
        {
            "title": "profiles.yml with targets of dbt-silt",
            "type": "object",
            "properties": {"config": {"type": "object"}},
            "additionalProperties": profile,
            "definitions": {"silt": target},
        }
    )


def configs_schema() -> str:
    """Returns the schema of the configs of a model, seed or snapshot; it allows a project's own configs."""
    described = {**described_attributes(IncrementalConfig), **described_attributes(SiltConfig)}
    found = _object(SiltConfig, described)
    for configs in DBT_CONFIGS.values():
        found["properties"] |= {name: {"description": text} for name, text in configs.items()}
    prefixed = {f"+{name}": schema for name, schema in found["properties"].items()}
    return _text(
        {
            "title": "configs of nodes that dbt-silt builds",
            "type": "object",
            "properties": {**found["properties"], **prefixed},
            "additionalProperties": True,
        }
    )


def _object(owner: type, described: Mapping[str, str]) -> Schema:
    properties = {each.name: _of_field(each, described) for each in fields(owner) if each.name != "_extra"}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _of_field(field: Field[Any], described: Mapping[str, str]) -> Schema:
    text = sentence(described.get(field.name, ""))
    kinds = kinds_of(field)
    if not set(kinds) <= set(_KINDS):
        return {"description": text}
    choices = [_KINDS[kind] for kind in kinds]
    nothing = [{"type": "null"}] if "None" in str(field.type) else []
    return {"description": text, "anyOf": [*choices, *nothing, *([] if "text" in kinds else [_JINJA])]}


def _text(schema: Schema) -> str:
    return json.dumps({"$schema": _DIALECT, **schema}, indent=2) + "\n"


def diff_schema() -> str:
    """Returns the schema of the answer of `silt diff --format json`."""
    text, number = {"type": "string"}, {"type": "integer", "minimum": 0}
    optional = {"type": ["string", "null"]}
    names = {"type": "array", "items": text}
    row = {"type": ["object", "null"], "additionalProperties": optional}
    columns = {
        "added": names,
        "removed": names,
        "retyped": _list_of({"name": text, "before": text, "after": text}),
        "renamed": _list_of({"before": text, "after": text}),
    }
    of_table = {
        "rows_before": {"type": ["integer", "null"]},
        "key": names,
        "row_ids": {"type": "boolean"},
        "columns": _closed(columns),
        "added": number,
        "removed": number,
        "changed": number,
        "changed_by_column": {"type": "object", "additionalProperties": number},
        "samples": _list_of({"kind": {"enum": ["added", "removed", "changed"]}, "before": row, "after": row}),
        "files_read": number,
    }
    relation = {
        "name": text,
        "kind": {"enum": ["table", "view", "function"]},
        "change": {"enum": ["created", "dropped", "replaced", "changed", "equal"]},
        "rows": {"type": ["integer", "null"]},
    }
    both = {**_closed({**relation, **of_table}), "required": list(relation)}
    both["dependencies"] = {"key": list(of_table)}
    answer = _closed({"compared": text, "hash": optional, "relations": {"type": "array", "items": both}})
    return json.dumps({"$schema": _DIALECT, "title": "silt diff --format json", **answer}, indent=2) + "\n"


def _closed(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(properties: Schema) -> Schema:
    return {"type": "array", "items": _closed(properties)}

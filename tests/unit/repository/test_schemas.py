"""The JSON schemas for editors accept and refuse the same values as the adapter."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from dbt.adapters.silt.credentials import SiltCredentials

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
GOOD = """
type: silt
threads: 4
warehouse: s3://bucket/house
storage: {endpoint: "http://127.0.0.1:9000", access_key_id: "{{ env_var('KEY') }}"}
spark_conf: {spark.driver.memory: 4g, spark.sql.shuffle.partitions: 4}
databases: {raw: landing/raw}
external_paths: "{{ env_var('OPEN', 'false') }}"
isolation_level: Serializable
keep_alive: off
resume: 2 hours
run_id: 20260301
"""


def mistakes(text: str) -> list[str]:
    schema = json.loads((REFERENCE / "profile.schema.json").read_text())
    Draft7Validator.check_schema(schema)
    document = {"config": {}, "shop": {"target": "dev", "outputs": {"dev": yaml.safe_load(text)}}}
    return [error.message for error in Draft7Validator(schema).iter_errors(document)]


def test_a_good_profile_has_no_mistakes() -> None:
    assert mistakes(GOOD) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("warehuose: house", "'warehuose' was unexpected"),
        ("threads: 0", "0 is not valid"),
        ("external_paths: maybe", "'maybe' is not valid"),
        ("isolation_level: strict", "'strict' is not valid"),
        ("max_commit_attempts: many", "'many' is not valid"),
        ("storage: {buckets: x}", "'buckets' was unexpected"),
    ],
)
def test_a_mistake_in_a_profile_is_reported(line: str, said: str) -> None:
    name = line.partition(":")[0]
    rest = "\n".join(each for each in GOOD.splitlines() if not each.startswith(f"{name}:"))
    (found,) = mistakes(f"{rest}\n{line}")
    assert said in found


def test_targets_of_other_adapters_are_accepted() -> None:
    assert mistakes("{type: postgres, host: localhost, anything: 1}") == []


def test_each_field_and_config_has_a_description() -> None:
    profile: dict[str, Any] = json.loads((REFERENCE / "profile.schema.json").read_text())
    configs: dict[str, Any] = json.loads((REFERENCE / "configs.schema.json").read_text())
    own = profile["definitions"]["silt"]["properties"]
    assert {each.name for each in fields(SiltCredentials)} <= set(own)
    described = [*own.items(), *configs["properties"].items()]
    assert [name for name, each in described if name != "type" and not each.get("description")] == []

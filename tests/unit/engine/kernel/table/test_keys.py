"""The properties of keys, as another program may have written them."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidPropertyError
from dbt.adapters.silt.engine.kernel.table.keys import children, enforced_references

OUTSIDE = ("..", "../other", "main/../../other", "/tmp/other", "main//t", "main/./t", "main\\..\\..\\other")


@pytest.mark.parametrize("location", OUTSIDE)
def test_a_parent_outside_of_the_database_is_an_error(location: str) -> None:
    key = {"kind": "foreign key", "columns": ["c"], "references": ["silt", "main", "p"], "to": ["id"]}
    text = json.dumps({**key, "enforced": True, "location": location, "id": "1"})
    with pytest.raises(InvalidPropertyError, match=r"`silt\.constraints\.fk`"):
        enforced_references({"silt.constraints.fk": text})


@pytest.mark.parametrize("location", OUTSIDE)
def test_a_child_outside_of_the_database_is_an_error(location: str) -> None:
    with pytest.raises(InvalidPropertyError, match=r"`silt\.referencedBy\.1`"):
        children({"silt.referencedBy.1": json.dumps([location, "silt.main.c"])})


@pytest.mark.parametrize("text", ["", "7", "[]", '["main/t"]', "[1, 2]", "null", "[" * 10_000])
def test_a_property_that_names_no_child_is_an_error(text: str) -> None:
    with pytest.raises(InvalidPropertyError):
        children({"silt.referencedBy.1": text})


def test_a_child_is_found_by_the_id_of_its_table() -> None:
    assert children({"silt.referencedBy.1": '["main/ünï t", "silt.main.ünï t"]', "a": "b"}) == {
        "1": ("main/ünï t", "silt.main.ünï t")
    }

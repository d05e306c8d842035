"""dbt's dataclasses generate code and schemas as `dbt_seams.prepared_classes` needs it: a new dbt fails here first.

They were read from dbt-core 1.11.16, dbt-common 1.39.0 and mashumaro 3.14.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import dbt.cli.main  # noqa: F401 -- imports the modules that define the classes
import pytest
from dbt.contracts.graph.nodes import ModelNode
from dbt_common.dataclass_schema import dbtClassMixin

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.dbt_seams import prepared_classes

METHODS = ("from_dict", "to_dict", "from_msgpack", "to_msgpack")


def methods(of: type) -> list[Any]:
    return [vars(of)[name] for name in METHODS]


def test_a_call_with_wrong_arguments_makes_a_dataclass_generate_its_code_once() -> None:
    @dataclass
    class Sample(dbtClassMixin):
        number: int

    at_first = methods(Sample)
    prepared_classes.generate_code(Sample)
    generated = methods(Sample)
    assert not any(new is old for new, old in zip(generated, at_first, strict=True))
    prepared_classes.generate_code(Sample)
    assert methods(Sample) == generated
    assert Sample.from_dict({"number": 1}).to_dict() == {"number": 1}


def test_the_classes_of_nodes_and_profiles_are_found() -> None:
    assert {ModelNode, SiltCredentials} <= set(prepared_classes.lazy_classes())


def test_dbt_keeps_the_schema_of_each_prepared_class() -> None:
    cache = vars(dbtClassMixin)["json_schema"].__func__
    assert cache.cache_info().maxsize >= prepared_classes.MOST_SCHEMAS
    prepared_classes.make_schema(SiltCredentials)
    known = cache.cache_info()
    SiltCredentials.json_schema()
    assert (cache.cache_info().hits, cache.cache_info().misses) == (known.hits + 1, known.misses)


@pytest.mark.parametrize("module", prepared_classes.SCHEMAS_OF)
def test_each_module_whose_schemas_are_made_has_a_class_with_a_schema(module: str) -> None:
    assert any(name.startswith(module) for name in sys.modules)
    found = [each for each in prepared_classes.lazy_classes() if each.__module__.startswith(module)]
    assert any(hasattr(each, "json_schema") for each in found)

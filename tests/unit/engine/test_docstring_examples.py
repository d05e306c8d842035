"""Runs the examples of the engine's docstrings: the examples of `Warehouse` on Spark, all others without it."""

from __future__ import annotations

import ast
import doctest
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse

ROOT = Path(__file__).parents[3]
ENGINE = ROOT / "dbt" / "adapters" / "silt" / "engine"
FRONT_DOOR = "dbt.adapters.silt.engine.warehouse"


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """Returns the docstrings of a module that contain examples."""
    return [each for each in doctest.DocTestFinder().find(module) if each.examples]


def check(test: doctest.DocTest, **names: Any) -> None:
    """Runs the examples of one docstring, with the names that they may use."""
    test.globs.update(names)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert result.failed == 0, "".join(report)
    assert result.attempted > 0


def modules_with_examples() -> list[str]:
    files = [file for file in ENGINE.rglob("*.py") if ">>> " in file.read_text(encoding="utf-8")]
    return sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)


def needs_spark(module: str) -> bool:
    """Returns whether a module's examples need Spark."""
    return module == FRONT_DOOR


@pytest.mark.parametrize("module", [name for name in modules_with_examples() if not needs_spark(name)])
def test_the_examples_of_a_module_have_the_stated_results(module: str, tmp_path: Path) -> None:
    """Each example has an empty folder."""
    found = examples(importlib.import_module(module))
    assert found
    for number, each in enumerate(found):
        check(each, folder=tmp_path / str(number))


@pytest.mark.parametrize("test", examples(importlib.import_module(FRONT_DOOR)), ids=lambda test: test.name)
def test_the_examples_of_warehouse_have_the_stated_results(
    test: doctest.DocTest, spark: SparkSession, tmp_path: Path
) -> None:
    """Each example has a warehouse with a table `orders` of two rows, and an empty folder."""
    session = spark.newSession()
    warehouse = Warehouse(session, str(tmp_path / "warehouse"))
    warehouse.sql("create table orders (id bigint not null, amount decimal(12, 2))")
    warehouse.sql("insert into orders values (1, 9.50), (2, 3.00)")
    check(test, spark=session, warehouse=warehouse, folder=str(tmp_path / "empty"))


def test_every_public_class_of_the_engine_except_errors_has_an_example() -> None:
    tree = ast.parse((ENGINE / "warehouse.py").read_text(encoding="utf-8"))
    classes = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.ClassDef)}
    public = {name: text for name, text in classes.items() if not name.startswith("_")}
    assert public and [name for name, text in public.items() if ">>> " not in text] == []

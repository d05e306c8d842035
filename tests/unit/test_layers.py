"""The floors of the house: arrows between modules point down only, and Spark and dbt stay on their own floors."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "dbt.adapters.silt"
ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "dbt" / "adapters" / "silt").rglob("*.py"))
}

# DESIGN section 2, the lowest floor first; catalog and commands stand side by side.
FLOORS = {"kernel": 0, "catalog": 1, "commands": 1, "statements": 2, "warehouse": 3}
GLUE = 4

# Inside the kernel a module imports from the lines above its own only.
KERNEL = (
    ("clock", "errors", "json_fields", "problems"),
    ("actions",),
    ("expressions", "literals", "paths", "rows_changed", "struct_stats", "z85"),
    ("properties", "schema"),
    ("keys", "type_widening"),
    ("changes", "clustering", "column_mapping", "domains", "features", "store"),
    ("enablement", "in_commit_timestamps"),
    ("columns", "faulty_store", "footers", "local_store", "log_segment", "stats_json"),
    ("checkpoint_read", "deletion_vectors", "memory_store", "object_store", "statistics"),
    ("data_files", "row_counts"),
    ("parquet_schema",),
    ("commit_file",),
    ("compaction",),
    ("bounds", "replay"),
    ("log_check", "parsed_values"),
    ("snapshot",),
    ("checkpoint_rows",),
    ("checkpoint", "checksum", "history", "row_tracking", "skipping"),
    ("cleanup", "commit_heads"),
    ("log", "validation"),
    ("attempt", "change_feed", "extremes", "contenders", "file_check", "freshness", "vacuum"),
    ("memory",),
    ("conflicts", "cut"),
    ("transaction",),
    ("restore",),
    ("lineage",),
)

# Of the modules that read and rewrite SQL text, those that hand a session on or ask it something.
STATEMENTS_WITH_SPARK = ("context", "inserts", "namespace", "pins", "resolve", "route", "table_changes")
PRIVATE_SPARK = ("_jvm", "_jdf", "_jsparkSession", "sparkContext")
# Where an import inside a function is meant: the lazy Plugin, and packages that need not be installed.
LAZY_IMPORTS = {PACKAGE: ("dbt.adapters.silt.impl",)}
OPTIONAL_PACKAGES = ("obstore",)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    """The full names that an import statement imports from: a module of ours, or whatever it names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"a relative import in line {node.lineno}"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES else str(node.module)


def imports(module: str) -> set[str]:
    return {name for node in ast.walk(tree(module)) for name in imported(node)}


def floor(module: str) -> int:
    if module == f"{PACKAGE}.__version__":
        return -1
    return GLUE if place(module) is None else FLOORS[str(place(module))]


def place(module: str) -> str | None:
    """The part of the engine that the module belongs to; None for the glue, and for the packages themselves."""
    inner = module.removeprefix(f"{PACKAGE}.engine.")
    return inner.split(".")[0] if inner != module else None


def ours() -> list[str]:
    return [module for module in MODULES if module not in (PACKAGE, f"{PACKAGE}.engine")]


@pytest.mark.parametrize("module", ours())
def test_arrows_point_down(module: str) -> None:
    for target in imports(module) & set(ours()):
        assert floor(target) <= floor(module), f"{module} imports {target} of a floor above"
        sideways = floor(target) == floor(module) and place(target) != place(module)
        assert not sideways, f"{module} imports {target} beside it"


def test_every_module_of_the_kernel_has_its_place() -> None:
    prefix = f"{PACKAGE}.engine.kernel."
    there = {module.removeprefix(prefix) for module in MODULES if module.startswith(prefix)}
    assert there == {name for line in KERNEL for name in line}


@pytest.mark.parametrize(("line", "name"), [(line, name) for line, names in enumerate(KERNEL) for name in names])
def test_arrows_inside_the_kernel_point_down(line: int, name: str) -> None:
    prefix = f"{PACKAGE}.engine.kernel."
    above = {f"{prefix}{other}" for names in KERNEL[line:] for other in names}
    assert not imports(prefix + name) & above


def verbs() -> list[str]:
    """The modules of commands that run a statement: those with a public function from a session to an Outcome."""
    return [
        module
        for module in ours()
        if place(module) == "commands"
        for node in tree(module).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and [argument.arg for argument in node.args.args[:1]] == ["spark"]
        and isinstance(node.returns, ast.Name)
        and node.returns.id == "Outcome"
    ]


def test_no_verb_imports_another() -> None:
    found = set(verbs())
    arrows = [(verb, other) for verb in found for other in imports(verb) & found if other != verb]
    assert arrows == []


@pytest.mark.parametrize(
    "module", [module for module in ours() if place(module) in ("kernel", "catalog", "statements")]
)
def test_spark_is_known_only_where_it_runs(module: str) -> None:
    uses = {name for name in imports(module) if name.split(".")[0] in ("pyspark", "py4j")}
    allowed = place(module) == "statements" and module.rpartition(".")[2] in STATEMENTS_WITH_SPARK
    assert allowed or not uses


@pytest.mark.parametrize("module", [module for module in ours() if module != f"{PACKAGE}.session"])
def test_only_the_session_builds_sessions(module: str) -> None:
    uses = [node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute) and _is_session(node.value)]
    assert not {"builder", "newSession"} & set(uses)


def _is_session(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("SparkSession", "spark")


@pytest.mark.parametrize("module", [module for module in ours() if module != f"{PACKAGE}.session"])
def test_only_the_session_looks_behind_sparks_public_api(module: str) -> None:
    used = {node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute)}
    assert not used & set(PRIVATE_SPARK)


@pytest.mark.parametrize("module", [module for module in ours() if place(module) is not None])
def test_the_engine_knows_no_dbt(module: str) -> None:
    foreign = {
        name for name in imports(module) if name.split(".")[0] in ("dbt", "dbt_common", "dbt_semantic_interfaces")
    }
    assert {name for name in foreign if not name.startswith(f"{PACKAGE}.engine")} <= {f"{PACKAGE}.__version__"}


@pytest.mark.parametrize("module", list(MODULES))
def test_imports_stand_at_the_top(module: str) -> None:
    functions = [node for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {name for function in functions for node in ast.walk(function) for name in imported(node)}
    inside = {name for name in inside if name.split(".")[0] not in OPTIONAL_PACKAGES}
    assert inside <= set(LAZY_IMPORTS.get(module, ()))


IMPORT_BLOCKED = """
import importlib, importlib.abc, pkgutil, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        root = name.split(".")[0]
        ours = name in ("dbt", "dbt.adapters") or name.startswith("dbt.adapters.silt")
        if root in ("pyspark", "py4j", "dbt_common", "dbt_semantic_interfaces") or (root == "dbt" and not ours):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    if not hasattr(module, "__path__"):
        print(name)
        continue
    for found in pkgutil.walk_packages(module.__path__, name + "."):
        importlib.import_module(found.name)
        print(found.name)
try:
    import pyspark
except ImportError:
    print("blocked")
"""


# What looks at runs from outside of dbt needs neither.
RECORDS = ("commit_facts", "journal", "rollback", "run_history")


def test_kernel_catalog_command_and_records_import_without_spark_and_without_dbt() -> None:
    packages = [f"{PACKAGE}.engine.kernel", f"{PACKAGE}.engine.catalog", f"{PACKAGE}.cli"]
    records = [f"{PACKAGE}.{name}" for name in RECORDS]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_BLOCKED, *packages, *records],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    expected = {module for module in MODULES if module.startswith(tuple(f"{package}." for package in packages))}
    assert set(run.stdout.split()) == expected | {*records, "blocked"}

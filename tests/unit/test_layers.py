"""The layers of the package: modules import only from lower layers, and only some layers use Spark and dbt."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import py4j
import pyspark
import pytest

PACKAGE = "dbt.adapters.silt"
ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "dbt" / "adapters" / "silt").rglob("*.py"))
}

# The folders, the lowest layer first. A module imports from its own folder and from lower layers. The files of the
# package's root and of the folders in ROOTS are listed individually.
FLOORS = (
    (
        *("engine/kernel/file_locks", "engine/kernel/lengths_of_time"),
        *("engine/kernel/owned_folders", "engine/kernel/printable"),
    ),
    ("engine/kernel/process_locks",),
    ("__version__", "lazy", "engine/kernel/errors", "engine/kernel/identifiers", "engine/kernel/foreign_json"),
    (
        *("engine/kernel/clock", "engine/kernel/near_names", "engine/kernel/progress"),
        *("engine/kernel/write_counts", "engine/spark_seams"),
    ),
    ("engine/kernel/table", "engine/kernel/storage", "engine/sql"),
    ("engine/kernel/files", "engine/kernel/publication_marks", "engine/sql/grammar", "engine/sql/query"),
    ("engine/kernel/log", "engine/sql/conditions"),
    ("engine/audits", "engine/kernel/scan", "engine/kernel/maintenance"),
    ("engine/kernel/rows",),
    ("engine/kernel/transaction",),
    ("engine/kernel/publication",),
    ("engine/catalog/names", "engine/commands/spark/failures"),
    ("engine/commands", "engine/commands/spark"),
    ("engine/catalog/folders", "engine/catalog/objects"),
    ("engine/catalog/branches",),
    ("engine/catalog",),
    ("engine/arrow",),
    ("engine/commands/writing",),
    ("engine/commands/reading",),
    ("engine/commands/rows",),
    ("engine/commands/merge", "engine/commands/tables", "engine/commands/maintenance"),
    ("engine/commands/insert",),
    ("engine/statements/resolve",),
    ("engine/answers", "engine/builds", "engine/statements/transactions"),
    ("engine/statements/steps",),
    ("engine/changed_keys",),
    ("engine/statements/execute",),
    ("engine/statements",),
    ("engine/warehouse", "engine/datasource"),
    ("engine/released_rows",),
    ("cli/output", "cli/tables", "column", "duckdb_file", "kept_spark", "records", "sqlglot_dialect"),
    ("report", "cli/project", "dbt_seams"),
    ("command_server", "status_lines"),
    ("cli/shell",),
    ("cli", "runs/logical_run"),
    ("cli/branching", "runs"),
    ("credentials", "materializations/incremental", "materializations/external"),
    ("materializations", "relation", "session"),
    ("connections", "endpoint/core", "materializations/python_models", "materializations/unit_tests"),
    ("endpoint/connect", "endpoint/thrift", "methods"),
    ("endpoint", "impl"),
)
# The folders whose files are listed individually.
ROOTS = ("", "engine", "engine/kernel")

# A module of at most SMALL lines that a single module imports is an exception; there are at most MOST_SMALL of them.
SMALL = 80
MOST_SMALL = 9

# The modules of `statements` that pass on or query a session.
STATEMENTS_WITH_SPARK = {
    f"{PACKAGE}.engine.statements.{name}"
    for name in (
        "execute.insert",
        "resolve.namespace",
        "resolve.snapshot_views",
        "resolve.changes_functions",
        "steps.audits",
        "steps.context",
        "steps.quarantine",
    )
}
# The modules that use a context, which no session over Spark Connect has.
USE_CONTEXTS = tuple(f"{PACKAGE}.session.{name}" for name in ("spark", "keeper", "stages", "registration"))
SPARK_SEAMS = f"{PACKAGE}.engine.spark_seams"
# Modules of PySpark that it does not document.
PRIVATE_MODULES = ("pyspark.java_gateway", "pyspark.serializers")
# Private names of Python and Java, and the column of files, which PySpark names too.
NOT_OF_SPARK = ("_JAVA_OPTIONS", "_asdict", "_fields", "_make", "_replace", "_exit", "_metadata")
BUILD_SESSIONS = tuple(f"{PACKAGE}.session.{name}" for name in ("spark", "connect_client"))
# Imports that are allowed inside functions: the lazy Plugin, and optional packages.
LAZY_IMPORTS = {PACKAGE: ("dbt.adapters.silt.impl", "dbt.adapters.silt.dbt_seams.interruption")}
OPTIONAL_PACKAGES = ("obstore",)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    """Yields the full names that a statement imports: modules of the package, or the names in the statement."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"a relative import in line {node.lineno}"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES else str(node.module)


def imports(module: str) -> set[str]:
    return {name for node in ast.walk(tree(module)) for name in imported(node)}


FLOOR_OF = {folder: height for height, folders in enumerate(FLOORS) for folder in folders}


def room(module: str) -> str:
    """Returns the folder of a module as named in FLOORS."""
    path = MODULES[module].relative_to(ROOT / "dbt" / "adapters" / "silt")
    folder = path.parent.as_posix().removeprefix(".")
    return path.with_suffix("").as_posix() if folder in ROOTS else folder


def part(module: str) -> str | None:
    """Returns the part of the engine that contains the module, or None outside of the engine."""
    inner = module.removeprefix(f"{PACKAGE}.engine.")
    return inner.split(".")[0] if inner != module else None


def ours() -> list[str]:
    """Returns all modules except `__init__` files."""
    return [module for module, file in MODULES.items() if file.name != "__init__.py"]


def test_every_folder_is_in_a_layer_and_every_listed_folder_exists() -> None:
    assert {room(module) for module in ours()} == set(FLOOR_OF)


@pytest.mark.parametrize("module", ours())
def test_modules_import_only_from_lower_layers(module: str) -> None:
    here = room(module)
    for target in imports(module) & set(ours()):
        there = room(target)
        assert there == here or FLOOR_OF[there] < FLOOR_OF[here], f"{module} imports {target}, which is not below it"


@pytest.mark.parametrize("module", [module for module in ours() if part(module) in ("catalog", "commands")])
def test_commands_and_the_catalog_do_not_import_each_other(module: str) -> None:
    assert {part(name) for name in imports(module)} & {"catalog", "commands"} <= {part(module)}


def test_few_small_modules_serve_a_single_module() -> None:
    """A module exists if two others import it or if it is longer; the number of exceptions may only be lowered."""
    users: dict[str, set[str]] = {module: set() for module in ours()}
    for module in ours():
        for target in imports(module) & set(users):
            users[target].add(module)
    small = [
        module
        for module, found in users.items()
        if len(found) == 1 and len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= SMALL
    ]
    assert len(small) <= MOST_SMALL, "fold one into the module that imports it: " + ", ".join(small)


def test_imports_have_no_cycles() -> None:
    graph = {module: imports(module) & set(ours()) for module in ours()}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize(
    "module", [module for module in ours() if part(module) in ("kernel", "catalog", "sql", "arrow", "statements")]
)
def test_only_modules_that_run_spark_import_it(module: str) -> None:
    uses = {name for name in imports(module) if name.split(".")[0] in ("pyspark", "py4j")}
    assert module in STATEMENTS_WITH_SPARK or not uses


@pytest.mark.parametrize("module", [module for module in ours() if module not in BUILD_SESSIONS])
def test_only_the_session_builds_sessions(module: str) -> None:
    uses = [node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute) and _is_session(node.value)]
    assert not {"builder", "newSession"} & set(uses)


def _is_session(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("SparkSession", "spark")


@pytest.mark.parametrize("module", [module for module in ours() if module not in USE_CONTEXTS])
def test_only_the_session_uses_a_context(module: str) -> None:
    assert "sparkContext" not in {node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("module", [module for module in ours() if module != SPARK_SEAMS])
def test_only_the_seams_use_private_names_of_pyspark_and_py4j(module: str) -> None:
    private = _private_names_of_spark() - set(NOT_OF_SPARK) - _defined(module)
    assert not private & _foreign_names(module)
    assert not {name for name in imports(module) if name.startswith(PRIVATE_MODULES)}


@cache
def _private_names_of_spark() -> frozenset[str]:
    """Returns the words in the sources of PySpark and py4j that begin with one underscore."""
    roots = (Path(str(package.__file__)).parent for package in (pyspark, py4j))
    files = (file for root in roots for file in root.rglob("*.py") if not {"pandas", "ml", "mllib"} & {*file.parts})
    texts = (file.read_text(encoding="utf-8") for file in files)
    return frozenset(word for text in texts for word in re.findall(r"(?<!\w)_[A-Za-z]\w*", text))


def _foreign_names(module: str) -> set[str]:
    """Returns the attributes that a module uses, with names in strings, as for `getattr`, but those of `self`."""
    nodes = list(ast.walk(tree(module)))
    own = ("self", "cls") if not _extends_spark(module) else ()
    attributes = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in own)
    }
    return attributes | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _extends_spark(module: str) -> bool:
    """Returns whether a class of the module has a base class of PySpark, whose private names `self` would reach."""
    of_spark = {
        name.split(".")[0]
        for node in tree(module).body
        for name, full in _aliases(node)
        if full.split(".")[0] in ("pyspark", "py4j")
    }
    bases = (base for node in tree(module).body if isinstance(node, ast.ClassDef) for base in node.bases)
    return any(ast.unparse(base).split(".")[0] in of_spark for base in bases)


def _defined(module: str) -> set[str]:
    """Returns the names that a module gives to its functions, classes, variables and attributes."""
    nodes = list(ast.walk(tree(module)))
    named = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    stored = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    return (
        named | stored | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    )


@pytest.mark.parametrize("module", [module for module in ours() if part(module) is not None])
def test_the_engine_does_not_import_dbt(module: str) -> None:
    foreign = {
        name for name in imports(module) if name.split(".")[0] in ("dbt", "dbt_common", "dbt_semantic_interfaces")
    }
    assert {name for name in foreign if not name.startswith(f"{PACKAGE}.engine")} <= {f"{PACKAGE}.__version__"}


@pytest.mark.parametrize("module", [module for module in ours() if ".dbt_seams." not in module])
def test_only_the_seams_import_dbt_core_except_its_promised_runner(module: str) -> None:
    """dbt promises to keep the interface for adapters, `dbtRunner` and its command."""
    used = {*_bound(module), *_strings(module)}
    found = {name for name in used if name == "dbt" or name.startswith("dbt.")}
    of_core = {name for name in found if not name.startswith("dbt.adapters")}
    assert of_core <= {"dbt.cli.main", "dbt.cli.main.dbtRunner", "dbt.cli.main.cli"}, f"{module} uses {of_core}"


def _bound(module: str) -> Iterator[str]:
    """Yields the full name of each object that the imports of a module bind."""
    for node in ast.walk(tree(module)):
        yield from (name for _, name in _aliases(node))


def _strings(module: str) -> Iterator[str]:
    """Yields the names in calls that import a module by its name."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("lazy_module", "import_module"):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))  # type: ignore[misc]


@pytest.mark.parametrize("module", list(MODULES))
def test_imports_are_at_the_top_of_modules(module: str) -> None:
    functions = [node for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {name for function in functions for node in ast.walk(function) for name in imported(node)}
    inside = {name for name in inside if name.split(".")[0] not in OPTIONAL_PACKAGES}
    assert inside <= set(LAZY_IMPORTS.get(module, ()))


@pytest.mark.parametrize("module", ours())
def test_a_lazy_module_is_the_module_that_type_checkers_see(module: str) -> None:
    seen: dict[str, str] = {}
    lazy: dict[str, str] = {}
    for branch in (node for node in tree(module).body if isinstance(node, ast.If)):
        lazy |= {ast.unparse(node.targets[0]): node.value for node in branch.orelse if isinstance(node, ast.Assign)}  # type: ignore[misc]
        seen |= {name: full for node in branch.body for name, full in _aliases(node)}
    for name, call in lazy.items():
        assert isinstance(call, ast.Call) and ast.literal_eval(call.args[0]) == seen[name]


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields each name that an import binds, with the full name of the imported object."""
    if isinstance(node, ast.ImportFrom):
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from ((alias.asname or alias.name, alias.name) for alias in node.names)


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


def test_modules_that_need_neither_spark_nor_dbt_import_without_them() -> None:
    packages = [
        f"{PACKAGE}.{name}"
        for name in (
            *("engine.kernel", "engine.catalog", "engine.sql", "engine.arrow", "engine.answers"),
            *("cli", "kept_spark", "records", "report"),
        )
    ]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_BLOCKED, *packages],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    expected = {module for module in MODULES if module.startswith(tuple(f"{package}." for package in packages))}
    assert set(run.stdout.split()) == expected | {"blocked"}


# Modules that a command loads only when it needs them, by the module with which it begins.
LOADED_LATER = {
    "impl": (
        *("numpy", "pyarrow", "pyspark", "rich"),
        *(f"{PACKAGE}.{name}" for name in ("engine.catalog.catalog", "engine.sql.grammar.parse", "runs.agate_tables")),
    ),
    "cli.main": ("agate", "jinja2", "pyarrow", "pyspark", "rich", "yaml"),
    "session.statement_process": ("dbt.cli.main", "rich"),
}


@pytest.mark.parametrize("module", LOADED_LATER)
def test_the_start_of_a_command_loads_no_module_that_it_may_not_need(module: str) -> None:
    code = f"import sys, {PACKAGE}.{module}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert set(LOADED_LATER[module]) & set(run.stdout.split()) == set(), "import it by `lazy_module`"


FOLDERS = sorted({file.parent for name in ("dbt", "tests", "benchmarks") for file in (ROOT / name).rglob("*.py")})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_folder_holds_at_most_twenty_python_files(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= 20, f"{folder} is full: give what belongs together a folder of its own"

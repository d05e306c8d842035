"""Refuses plans of clients that run code or name files, by the rules for stored code, unless the profile allows them.

SQL in a plan is checked where the engine resolves it.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import Message

from dbt.adapters.silt.endpoint.connect.plans import messages
from dbt.adapters.silt.engine.kernel.errors import ExternalPathError, StoredCodeError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql.query.rule_texts import RUNS_CODE, WITH_OPTIONS_THAT_OPEN_FILES
from dbt.adapters.silt.engine.sql.query.stored_texts import FILE_FORMATS, forbidden
from dbt.adapters.silt.engine.warehouse import WarehouseSettings

_PYTHON: Final = frozenset(("PythonUDF", "PythonUDTF", "PythonDataSource"))
_CODE: Final = frozenset(
    "JavaUDF ScalarScalaUDF TypedAggregateExpression MlCommand MlRelation ExecuteExternalCommand PipelineCommand "
    "CreateResourceProfileCommand StreamingQueryListenerBusCommand StreamingQueryListenerCommand Any".split()
)
"""Messages that name classes, contain code of Java, or are extensions that the server decodes by classes."""
_OWN: Final = "silt"
"""The provider of this package, which a program registers in a Spark of its own."""
_HARMLESS: Final = frozenset(("rate", "rate-micro-batch", "noop", "memory", "console"))

_BY_NAME: Final = (
    "Name the table: `spark.table`, `saveAsTable`, `writeTo`. Streams from and to tables run in a program with its own "
    "Spark"
)
_OF_PYTHON: Final = "If you trust all clients, set `python_functions: true` in the profile of the endpoint"
_OF_CODE: Final = "If you trust all clients, set `stored_code: true` in the profile of the endpoint"
_OF_FILES: Final = "If you trust all clients, set `external_paths: true` in the profile of the endpoint"


def check(message: Message, allowed: WarehouseSettings) -> None:
    """Checks all parts of a plan.

    Raises:
        UnsupportedStatementError: if it contains Python, which the profile does not allow.
        StoredCodeError: if it contains other code, or reads or writes through a provider that is not for plain files.
        ExternalPathError: if it names files.
    """
    for each in messages(message):
        kind = each.DESCRIPTOR.name
        if kind in _PYTHON and not allowed.python_functions:
            raise UnsupportedStatementError("a plan of a client contains Python code", remedy=_OF_PYTHON)
        if kind in _CODE:
            _check_code(f"`{kind}`", allowed)
        elif kind in _PARTS:
            _PARTS[kind](each, allowed)


def check_artifact(name: str, allowed: WarehouseSettings) -> None:
    """Checks the name of a file that a client uploads: rows are harmless, other files are code or are read by code.

    Raises:
        UnsupportedStatementError, StoredCodeError: as `check`.
    """
    kind, *others = name.split("/")
    if kind == "cache" and ".." not in others:
        return
    if kind in ("pyfiles", "files", "archives"):
        if not allowed.python_functions:
            raise UnsupportedStatementError(f"a client uploads the file `{name}`", remedy=_OF_PYTHON)
        return
    _check_code(f"the file `{name}`", allowed)


def _check_code(what: str, allowed: WarehouseSettings) -> None:
    if not allowed.stored_code:
        raise StoredCodeError(f"a plan of a client contains {what}, which may run code", remedy=_OF_CODE)


def _check_provider(provider: str, allowed: WarehouseSettings) -> None:
    if provider.lower() == _OWN and not allowed.stored_code:
        raise UnsupportedStatementError(f"a client cannot read or write by the provider `{provider}`", remedy=_BY_NAME)
    if provider.lower() not in _HARMLESS | FILE_FORMATS:
        _check_code(f"the provider `{provider}`", allowed)


def _check_files(place: str, allowed: WarehouseSettings) -> None:
    if not allowed.external_paths:
        raise ExternalPathError(f"a plan of a client names the files `{place}`", remedy=_OF_FILES)


def _source(source: Any, allowed: WarehouseSettings) -> None:
    _check_provider(source.format or "parquet", allowed)
    if source.paths or "path" in map(str.lower, source.options):
        _check_files(", ".join(source.paths) or "of its options", allowed)


def _write(write: Any, allowed: WarehouseSettings) -> None:
    if write.WhichOneof("save_type") == "table":
        return
    _check_provider(write.source or "parquet", allowed)
    if (write.source or "parquet").lower() not in _HARMLESS:
        _check_files(write.path or "of its options", allowed)


def _stream(write: Any, allowed: WarehouseSettings) -> None:
    _check_provider(write.format or "parquet", allowed)
    if write.WhichOneof("sink_destination") == "table_name":
        raise UnsupportedStatementError(
            "a stream cannot write a table of a warehouse here",
            table=write.table_name,
            remedy='Use `writeStream.format("silt")` in a program with its own Spark',
        )
    if write.path or write.options:
        _check_files(write.path or "of its options", allowed)


def _function(call: Any, allowed: WarehouseSettings) -> None:
    name = call.function_name.lower().rpartition(".")[2]
    if name in RUNS_CODE:
        _check_code(f"the function `{name}`", allowed)
    most = WITH_OPTIONS_THAT_OPEN_FILES.get(name)
    if most is not None and len(call.arguments) > most:
        _check_code(f"options of the function `{name}`", allowed)


def _text(expression: Any, allowed: WarehouseSettings) -> None:
    found = None if allowed.stored_code else forbidden(f"select {expression.expression}\n")
    if found is not None:
        _check_code(found, allowed)


def _path_of_artifact(call: Any, allowed: WarehouseSettings) -> None:
    _check_files(call.path, allowed)


_PARTS: Final = {
    "DataSource": _source,
    "WriteOperation": _write,
    "WriteStreamOperationStart": _stream,
    "UnresolvedFunction": _function,
    "CallFunction": _function,
    "UnresolvedTableValuedFunction": _function,
    "ExpressionString": _text,
    "RefreshByPath": _path_of_artifact,
}

"""Reads and writes the catalog's documents: a JSON file for each view, each function and each schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar, cast

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import TableDamagedError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.json_fields import boolean, full_map, long, required, strings, struct, text
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import Name, Parameter, ViewColumn

VIEW_SUFFIX = ".view.json"
FUNCTION_SUFFIX = ".function.json"

_FORMAT = 1


@dataclass(frozen=True)
class View:
    """A query under a name.

    Attributes:
        text: the query, as the user wrote it.
        columns: the names and comments in the statement; empty if the query's own names are used.
        query_columns: the query's own names, in the order of `columns`; empty if they are assigned by position.
        current_database, current_schema: the defaults of unqualified names in the text.
        created_at: milliseconds since 1970-01-01 UTC.
        inputs: the tables, views and functions that earlier queries of its unit of work have read, by name: its text
            may depend on them.
    """

    name: RelationName
    text: str
    columns: tuple[ViewColumn, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    current_database: str | None = None
    current_schema: str | None = None
    created_at: int | None = None
    query_columns: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of the inputs of its rows: the text, the columns' names, and the current database and schema."""
        names = tuple(column.name for column in self.columns)
        return _hash(self.text, (names, self.query_columns), self.current_database, self.current_schema)

    @property
    def comments(self) -> Mapping[Name, str]:
        """The comments of its columns and of the fields inside them, by their paths in lower case."""
        found = {(column.name, *path): text for column in self.columns for path, text in column.fields}
        found |= {(column.name,): column.comment for column in self.columns if column.comment is not None}
        return {tuple(map(str.lower, path)): text for path, text in found.items()}

    def commented(self, schema: StructType) -> StructType:
        """Returns the columns of its query, with the comments from the view's statement."""
        comments = self.comments
        return cast(StructType, _commented(schema, comments, ())) if comments else schema


def _commented(data_type: DataType, comments: Mapping[Name, str], above: Name) -> DataType:
    """Returns a type with the comments of the fields inside it, by their paths in lower case.

    Args:
        above: the path of the type.
    """

    def of_part(name: str, part: DataType) -> DataType:
        return _commented(part, comments, (*above, name))

    def of_field(field: StructField) -> StructField:
        changed = replace(field, type=of_part(field.name.lower(), field.type))
        comment = comments.get((*above, field.name.lower()))
        return changed if comment is None else changed.with_metadata(comment=comment)

    match data_type:
        case StructType():
            return StructType(tuple(map(of_field, data_type)))
        case ArrayType():
            return replace(data_type, element_type=of_part("element", data_type.element_type))
        case MapType():
            key, value = of_part("key", data_type.key_type), of_part("value", data_type.value_type)
            return replace(data_type, key_type=key, value_type=value)
    return data_type


@dataclass(frozen=True)
class PythonHandler:
    """The entry point of a function's Python code, with the packages and the Python version that it needs."""

    name: str
    packages: tuple[str, ...] = ()
    runtime_version: str | None = None


@dataclass(frozen=True)
class Function:
    """A function under a name.

    Attributes:
        body: the SQL expression or query that gives the value, or Python code, as the user wrote it.
        python: the entry point, if the body is Python code.
        returns: the SQL type of the value, or `table (...)`; None for the body's own type.
        deterministic: the declaration in the function's statement, if any.
        current_database, current_schema: the defaults of unqualified names in the body.
        created_at: milliseconds since 1970-01-01 UTC.
        inputs: as in `View`.
    """

    name: RelationName
    parameters: tuple[Parameter, ...]
    body: str
    returns: str | None = None
    deterministic: bool | None = None
    python: PythonHandler | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    current_database: str | None = None
    current_schema: str | None = None
    created_at: int | None = None
    inputs: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of the inputs of its values: the parameters, the body, and the current database and schema."""
        own = (self.parameters, self.body, self.returns, self.python)
        return _hash(own, self.current_database, self.current_schema)


def serialize_view(view: View) -> bytes:
    """Returns the document of a view, without its name, so that a rename moves the document unchanged."""
    columns = [_column_body(each) for each in view.columns]
    names = list(view.query_columns) or None
    return _serialize("view", text=view.text, columns=columns, queryColumns=names, **_common(view))


def parse_view(data: bytes, name: RelationName) -> View:
    """Returns the view of that name, from its document.

    Raises:
        TableDamagedError: if the document cannot be read.
        UnsupportedFeatureError: if a later version of this package wrote it.
    """
    return _parse(data, name, "view", _view)


def serialize_function(function: Function) -> bytes:
    """Returns the document of a function, without its name."""
    parameters = [
        {"name": p.name, "type": p.type, "default": p.default, "comment": p.comment} for p in function.parameters
    ]
    return _serialize(
        "function",
        parameters=parameters,
        body=function.body,
        returns=function.returns,
        deterministic=function.deterministic,
        python=None if function.python is None else asdict(function.python),
        **_common(function),
    )


def parse_function(data: bytes, name: RelationName) -> Function:
    """Returns the function of that name, from its document; raises as `parse_view` does."""
    return _parse(data, name, "function", _function)


def serialize_schema(created_at: int) -> bytes:
    """Returns the marker file that makes a folder a schema."""
    return _serialize("schema", createdAt=created_at)


_Parsed = TypeVar("_Parsed")


def _view(body: Mapping[str, Any], name: RelationName) -> View:
    columns = tuple(map(_column, body["columns"]))
    names = strings(body, "queryColumns") or ()
    if names and len(names) != len(columns):
        raise ValueError(f"{len(columns)} columns for the {len(names)} columns of its query")
    return View(name=name, text=_text(body, "text"), columns=columns, query_columns=names, **_common_arguments(body))


def _column_body(column: ViewColumn) -> dict[str, Any]:
    fields = [{"path": list(path), "comment": comment} for path, comment in column.fields]
    return {"name": column.name, "comment": column.comment} | ({"fields": fields} if fields else {})


def _column(body: Mapping[str, Any]) -> ViewColumn:
    fields = tuple((strings(each, "path") or (), _text(each, "comment")) for each in body.get("fields") or ())
    if not all(path for path, _ in fields):
        raise ValueError("a field without a path")
    return ViewColumn(_text(body, "name"), text(body, "comment"), fields)


def _function(body: Mapping[str, Any], name: RelationName) -> Function:
    parameters = tuple(
        Parameter(_text(each, "name"), _text(each, "type"), text(each, "default"), text(each, "comment"))
        for each in body["parameters"]
    )
    return Function(
        name=name,
        parameters=parameters,
        body=_text(body, "body"),
        returns=text(body, "returns"),
        deterministic=boolean(body, "deterministic"),
        python=_handler(struct(body, "python")),
        **_common_arguments(body),
    )


def _handler(body: Mapping[str, Any] | None) -> PythonHandler | None:
    if body is None:
        return None
    return PythonHandler(_text(body, "name"), strings(body, "packages") or (), text(body, "runtime_version"))


def _common(document: View | Function) -> dict[str, Any]:
    return {
        "comment": document.comment,
        "properties": dict(document.properties),
        "currentDatabase": document.current_database,
        "currentSchema": document.current_schema,
        "createdAt": document.created_at,
        "inputs": list(document.inputs) or None,
    }


def _common_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "comment": text(body, "comment"),
        "properties": full_map(body, "properties") or {},
        "current_database": text(body, "currentDatabase"),
        "current_schema": text(body, "currentSchema"),
        "created_at": long(body, "createdAt"),
        "inputs": strings(body, "inputs") or (),
    }


def file_name(key: str) -> str:
    """Returns the name, without a suffix, of the file of a document that is found by a key of any characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _text(body: Mapping[str, Any], key: str) -> str:
    return required(text(body, key), key)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _serialize(kind: str, **body: Any) -> bytes:
    present = {key: value for key, value in body.items() if value is not None}
    return json.dumps({"format": _FORMAT, "kind": kind, **present}, ensure_ascii=False, indent=1).encode()


def _parse(
    data: bytes, name: RelationName, kind: str, build: Callable[[Mapping[str, Any], RelationName], _Parsed]
) -> _Parsed:
    try:
        body = foreign_json.loads(data)
        version, found = body["format"], body["kind"]
        if version == _FORMAT and found == kind:
            return build(body, name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TableDamagedError(
            f"the document of this {kind} cannot be read ({error})",
            table=str(name),
            remedy=f"Create the {kind} again with `create or replace {kind}`",
        ) from error
    raise UnsupportedFeatureError(
        f"its document is of kind {found!r} in format {version!r}, and this version reads {kind!r} in format {_FORMAT}",
        table=str(name),
        remedy="Use a later version of dbt-silt",
    )

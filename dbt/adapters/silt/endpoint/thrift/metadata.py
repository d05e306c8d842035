"""Answers the metadata calls of HiveServer2's service from the catalog and the logs, without a job of Spark."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from dbt.adapters.silt.endpoint.core.answers import Answer, answer_of
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote

_KINDS: Final = {RelationKind.TABLE: "TABLE", RelationKind.VIEW: "VIEW"}
_TEXT, _INT, _SHORT, _FLAG = pa.string(), pa.int32(), pa.int16(), pa.bool_()

_CATALOGS: Final = {"TABLE_CAT": _TEXT}
_SCHEMAS: Final = {"TABLE_SCHEM": _TEXT, "TABLE_CATALOG": _TEXT}
_TABLES: Final = dict.fromkeys(
    "TABLE_CAT TABLE_SCHEM TABLE_NAME TABLE_TYPE REMARKS TYPE_CAT TYPE_SCHEM TYPE_NAME SELF_REFERENCING_COL_NAME "
    "REF_GENERATION".split(),
    _TEXT,
)
_TABLE_TYPES: Final = {"TABLE_TYPE": _TEXT}
_COLUMNS: Final = {
    **dict.fromkeys(("TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "COLUMN_NAME"), _TEXT),
    "DATA_TYPE": _INT,
    "TYPE_NAME": _TEXT,
    "COLUMN_SIZE": _INT,
    "BUFFER_LENGTH": pa.int8(),
    **dict.fromkeys(("DECIMAL_DIGITS", "NUM_PREC_RADIX", "NULLABLE"), _INT),
    "REMARKS": _TEXT,
    "COLUMN_DEF": _TEXT,
    "SQL_DATA_TYPE": _INT,
    "SQL_DATETIME_SUB": _INT,
    "CHAR_OCTET_LENGTH": _INT,
    "ORDINAL_POSITION": _INT,
    "IS_NULLABLE": _TEXT,
    **dict.fromkeys(("SCOPE_CATALOG", "SCOPE_SCHEMA", "SCOPE_TABLE"), _TEXT),
    "SOURCE_DATA_TYPE": _SHORT,
    "IS_AUTO_INCREMENT": _TEXT,
}
_TYPE_INFO: Final = {
    "TYPE_NAME": _TEXT,
    "DATA_TYPE": _INT,
    "PRECISION": _INT,
    "LITERAL_PREFIX": _TEXT,
    "LITERAL_SUFFIX": _TEXT,
    "CREATE_PARAMS": _TEXT,
    "NULLABLE": _SHORT,
    "CASE_SENSITIVE": _FLAG,
    "SEARCHABLE": _SHORT,
    "UNSIGNED_ATTRIBUTE": _FLAG,
    "FIXED_PREC_SCALE": _FLAG,
    "AUTO_INCREMENT": _FLAG,
    "LOCAL_TYPE_NAME": _TEXT,
    "MINIMUM_SCALE": _SHORT,
    "MAXIMUM_SCALE": _SHORT,
    **dict.fromkeys(("SQL_DATA_TYPE", "SQL_DATETIME_SUB", "NUM_PREC_RADIX"), _INT),
}
_FUNCTIONS: Final = {
    **dict.fromkeys(("FUNCTION_CAT", "FUNCTION_SCHEM", "FUNCTION_NAME", "REMARKS"), _TEXT),
    "FUNCTION_TYPE": _INT,
    "SPECIFIC_NAME": _TEXT,
}

# Java's numbers of the types (`java.sql.Types`), with their precision in digits, if they are numbers.
_JDBC: Final[Mapping[str, tuple[int, int | None]]] = {
    "boolean": (16, None),
    "tinyint": (-6, 3),
    "smallint": (5, 5),
    "int": (4, 10),
    "bigint": (-5, 19),
    "float": (6, 7),
    "double": (8, 15),
    "decimal": (3, 38),
    "string": (12, None),
    "binary": (-2, None),
    "date": (91, None),
    "timestamp": (93, None),
    "timestamp_ntz": (93, None),
    "array": (2003, None),
    "map": (2000, None),
    "struct": (2002, None),
    "varchar": (12, None),
    "char": (1, None),
    "void": (0, None),
}
_OTHER: Final = (12, None)


def catalogs(session: Session) -> Answer:
    """Returns the databases, if there are several: a tool then shows a level for them."""
    found = session.catalog.databases()
    return _answer(_CATALOGS, ([each] for each in (sorted(found) if len(found) > 1 else ())))


def schemas(session: Session, catalog: str | None, pattern: str | None) -> Answer:
    """Returns the schemas of a database, by default the current one."""
    house, matches = _House.of(session, catalog), _like(pattern)
    names, shown = house.catalog.schemas(house.database), house.shown
    return _answer(_SCHEMAS, ([each, shown] for each in sorted(names) if matches(each)))


def tables(
    session: Session, catalog: str | None, schema: str | None, name: str | None, kinds: Sequence[str] | None
) -> Answer:
    """Returns the tables and views whose names match the patterns."""
    house, wanted = _House.of(session, catalog), {each.upper() for each in kinds or ()}
    found = _relations(house, schema, name)
    rows = (
        [house.shown, each.schema, each.identifier, kind, "", *(None,) * 5]
        for each, kind in found
        if not wanted or kind in wanted
    )
    return _answer(_TABLES, rows)


def table_types() -> Answer:
    """Returns the kinds of relations."""
    return _answer(_TABLE_TYPES, ([each] for each in _KINDS.values()))


def columns(session: Session, catalog: str | None, schema: str | None, name: str | None, column: str | None) -> Answer:
    """Returns the columns whose names match the patterns; only Spark knows the columns of a view, which it analyses."""
    house, matches = _House.of(session, catalog), _like(column)
    rows = [
        _column(house.shown, found, position, *each)
        for found, kind in _relations(house, schema, name)
        for position, each in enumerate(_fields(session, house, found, kind), 1)
        if matches(each[0])
    ]
    return _answer(_COLUMNS, rows)


def type_info() -> Answer:
    """Returns Spark's types."""
    rows = [
        [*(word.upper(), number, precision, None, None, None, 1, word == "string", 3, not precision, False, False),
         *(None, 0, 38 if word == "decimal" else 0, None, None, 10 if precision else None)]
        for word, (number, precision) in _JDBC.items()
    ]  # fmt: skip
    return _answer(_TYPE_INFO, rows)


def functions(session: Session, catalog: str | None, schema: str | None, name: str | None) -> Answer:
    """Returns the functions that the warehouse stores; Spark's own functions are not listed."""
    house, matches, in_schema = _House.of(session, catalog), _like(name), _like(schema)
    found = (
        each
        for part in sorted(house.catalog.schemas(house.database))
        if in_schema(part)
        for each in house.catalog.functions(house.database, part)
    )
    rows = ([house.shown, each.schema, each.identifier, "", 1, str(each)] for each in found if matches(each.identifier))
    return _answer(_FUNCTIONS, rows)


def _answer(schema: Mapping[str, pa.DataType], rows: Iterable[Sequence[Any]]) -> Answer:
    given = list(rows)
    values = [pa.array([row[at] for row in given], kind) for at, kind in enumerate(schema.values())]
    return answer_of(pa.table(values, names=list(schema)))


@dataclass(frozen=True)
class _House:
    """The names that one call sees.

    Attributes:
        database: the database that the call is about.
        shown: the database as tools name it: nothing if it is the only one, so that they write names of two parts.
    """

    catalog: Catalog
    database: str
    shown: str

    @classmethod
    def of(cls, session: Session, named: str | None) -> _House:
        """Returns the names of a database, by default of the current one."""
        catalog = session.catalog
        known = {each.lower(): each for each in catalog.databases()}
        database = known.get((named or "").lower(), session.current[0])
        return cls(catalog, database, database if len(known) > 1 else "")


def _relations(house: _House, schema: str | None, name: str | None) -> Iterator[tuple[RelationName, str]]:
    in_schema, matches = _like(schema), _like(name)
    for entry in sorted(house.catalog.all_relations(house.database), key=lambda each: str(each.name)):
        if in_schema(entry.name.schema) and matches(entry.name.identifier):
            yield entry.name, _KINDS[entry.kind]


def _like(pattern: str | None) -> Any:
    """Returns a test of names by a pattern of JDBC, with `%` and `_`, or of Hive, with `*`; None matches all names."""
    parts = re.split(r"(\\.|[%_*])", pattern or "%")
    text = "".join({"%": ".*", "*": ".*", "_": "."}.get(each, re.escape(each.removeprefix("\\"))) for each in parts)
    return lambda name: re.fullmatch(text, name, re.IGNORECASE) is not None


def _fields(session: Session, house: _House, name: RelationName, kind: str) -> list[tuple[str, str, bool, str]]:
    """Returns name, type, nullability and comment of each column; none if the relation cannot be read."""
    with contextlib.suppress(SiltError):
        if kind == _KINDS[RelationKind.TABLE]:
            schema = house.catalog.table(name).snapshot().schema
            return [(each.name, each.sql_type.lower(), each.nullable, each.comment or "") for each in schema]
        text = ".".join(map(quote, (name.database, name.schema, name.identifier)))
        with session.busy():
            found = session.warehouse.schema_of(f"select * from {text}")
        return [(each.name, each.dataType.simpleString(), each.nullable, "") for each in found.fields]
    return []


def _column(shown: str, table: RelationName, position: int, *field: Any) -> list[Any]:
    name, kind, nullable, comment = field
    number, precision = _JDBC.get(re.match(r"\w*", kind).group(), _OTHER)  # type: ignore[union-attr]
    numbers = (
        [int(each) for each in re.findall(r"\d+", kind)] if kind.startswith(("decimal", "char", "varchar")) else []
    )
    size = numbers[0] if numbers else precision
    digits = numbers[1] if len(numbers) > 1 else (0 if precision else None)
    return [
        *(shown, table.schema, table.identifier, name, number, kind.upper(), size, None, digits),
        *(10 if precision else None, int(nullable), comment, None, None, None, None, position),
        *("YES" if nullable else "NO", None, None, None, None, "NO"),
    ]

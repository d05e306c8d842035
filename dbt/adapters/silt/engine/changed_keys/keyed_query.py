"""Checks whether a statement with CHANGED KEYS can evaluate its query for single keys (decision 0089)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.builds.build_facts import facts_of
from dbt.adapters.silt.engine.builds.settings import hashes, session_settings
from dbt.adapters.silt.engine.changed_keys import known_plans
from dbt.adapters.silt.engine.changed_keys.plan_text import (
    is_readable_name,
    resolved_plan,
    unreadable_name,
    with_readable_strings,
)
from dbt.adapters.silt.engine.changed_keys.proof import INPUT, NotProved, Roles, roles
from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, content_schema, facts_hash
from dbt.adapters.silt.engine.kernel.printable import line
from dbt.adapters.silt.engine.kernel.table.schema import (
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import padded_type
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO
from dbt.adapters.silt.engine.sql.ast import ChangedKeys, Name
from dbt.adapters.silt.engine.sql.tokens import normal_text, tokenize
from dbt.adapters.silt.engine.statements.resolve.expansion import Table, View, distinct, full_name
from dbt.adapters.silt.engine.statements.resolve.reads import Inputs, Read, Resolved, snapshots_of, versions_of
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from dbt.adapters.silt.engine.statements.steps.context import Context

OWNER: Final = "changed keys"
"""The owner of the facts in the commits of these statements."""

_KEY_TYPES: Final = frozenset("byte short integer long string boolean date timestamp timestamp_ntz binary".split())
_SHOWN_FIELDS: Final = "spark.sql.debug.maxToStringFields"
_ALL_FIELDS: Final = "1000000"


@dataclass(frozen=True)
class KeyedQuery:
    """A query whose rows are replaced by key.

    Attributes:
        frame: the rows of the query, as Spark has analysed it; they are not computed.
        key: the names of the key's columns in the result.
        facts: the facts that determine the rows of the query.
        inputs: the tables, in the order in which the query and its views name them.
        roles: the columns of each of these tables that hold the key in each read of it, unless it needs all rows.
        problem: why the query cannot be evaluated for single keys, to continue "the query ...", if so.
    """

    frame: DataFrame
    key: tuple[str, ...]
    facts: BuildFacts
    inputs: tuple[Table, ...] = ()
    roles: Roles = field(default_factory=dict)
    problem: str | None = None

    def needs_all(self, number: int) -> bool:
        """Returns whether the query needs all rows of an input."""
        return None in self.roles.get(number, (None,))

    def keys_of(self, number: int) -> list[tuple[str, ...]]:
        """Returns the columns of an input that hold the key: several lists, if the input is read by several keys."""
        return sorted(each for each in self.roles.get(number, ()) if each is not None)


class Numbered:
    """Names the tables of a query by numbers, and notes them."""

    def __init__(self, views: SnapshotViews) -> None:
        self.views = views
        self.tables: list[Table] = []

    def __call__(self, table: Table, read: Read) -> str:
        view = self.views.view(read.log, read.snapshot, read.files)
        self.tables.append(table)
        return f"(select * from {view} as {INPUT}{len(self.tables) - 1})"


def keyed_query(
    context: Context, clause: ChangedKeys, resolved: Resolved, target: StructType | None = None
) -> KeyedQuery:
    """Checks the query of a statement, which is resolved and not run.

    Args:
        target: the columns of the table that is written, if it exists already.

    Raises:
        ColumnNotFoundError: if a column of the key is missing in the result, or a column of an input in the input.
        InvalidStatementError: if the key has a map, or an input is unknown.
        UnsupportedStatementError: if the query cannot be evaluated for single keys, unless the clause allows it.
    """
    frame = context.spark.sql(resolved.texts[0])
    columns = query_schema(frame)
    positions = _positions(clause, columns)
    key = tuple(columns.names[at] for at in positions)
    facts = _facts(context, clause, resolved, columns)
    numbered = Numbered(context.resolver.snapshot_views)
    sql = context.resolver.rendered_around(resolved, numbered)
    inputs = tuple(numbered.tables)
    schemas = [each.snapshot(resolved.cut).schema for each in inputs]
    _check_mapping(clause, inputs, schemas, key)
    try:
        _check_relations(resolved, facts)
        found = _roles(context, sql, positions, len(columns.names))
        query = KeyedQuery(frame, key, facts, inputs, found)
        types = [columns.fields[at] for at in positions]
        _check_types(types)
        for number, table in enumerate(inputs):
            for names in query.keys_of(number):
                _check_same(dict(zip(names, types, strict=True)), schemas[number], table.log.name)
        if target is not None:
            _check_same(dict(zip(key, types, strict=True)), target, "the table")
        _check_mapped(clause, inputs, found)
    except NotProved as error:
        if not clause.or_all:
            raise UnsupportedStatementError(
                f"the rows of single keys cannot be computed: the query {error}",
                remedy="Change the query, or allow all rows to be replaced in each run: `OR REPLACE ALL`, in dbt "
                "`on_unsupported_query: full_refresh`",
            ) from error
        return KeyedQuery(frame, key, facts, inputs, problem=str(error))
    return query


def _positions(clause: ChangedKeys, columns: StructType) -> list[int]:
    positions = []
    for name in clause.columns:
        column = columns.require(name, "the query")
        if isinstance(column.type, MapType):
            raise InvalidStatementError(
                f"the column `{column.name}` is a map, and a map cannot be a key",
                remedy="Name other columns as the key",
            )
        positions.append(columns.names.index(column.name))
    return positions


def _facts(context: Context, clause: ChangedKeys, resolved: Resolved, columns: StructType) -> BuildFacts:
    text = resolved.expanded[0]
    definitions = sorted(set(text.definitions()))
    result = content_schema(columns.to_json())
    code = [normal_text(text.text.sql), clause.columns, result, definitions]
    versions = {"Spark": context.spark.version, "dbt-silt": ENGINE_INFO}
    settings = hashes({**versions, **session_settings(context.spark.conf)})
    # Earlier queries of the same unit of work do not determine the rows of this query.
    own = replace(resolved, inputs=Inputs(versions_of(resolved.reads), snapshots=snapshots_of(resolved.reads)))
    build = Build(OWNER, facts_hash(code), facts_hash(settings))
    return replace(facts_of(build, own, context.resolver.time_zone), settings=settings)


def _check_relations(resolved: Resolved, facts: BuildFacts) -> None:
    """Checks that the query reads only newest versions of tables, and has no values that depend on chance or time."""
    for text in distinct(resolved.expanded[:1]):
        for reference in text.text.text.scan.references:
            child, name = text.children.get(reference), ".".join(reference.parts)
            if not isinstance(child, View) and not (isinstance(child, Table) and child.fixed is None):
                raise NotProved(f"reads {name}, which is not the newest version of a table of the warehouse")
            if not all(map(is_readable_name, _column_names(child, resolved))):
                raise NotProved(f"reads {name}, which has a column with a bracket or `#` in its name")
        if text.calls:
            raise NotProved("calls a function of the warehouse")
        unreadable = unreadable_name(text.text.text.tokens)
        if unreadable is not None:
            raise NotProved(f"has the name `{line(unreadable)}`, which has a bracket, a backslash, a line break or `#`")
    if facts.unknown:
        raise NotProved(facts.unknown[0].removeprefix("it "))
    if facts.day is not None:
        raise NotProved("uses current_date")


def _column_names(relation: Table | View, resolved: Resolved) -> Sequence[str]:
    """Returns the names of the columns of a relation, and of the fields inside them."""
    if isinstance(relation, View):
        return relation.columns
    return [each.name for each in all_fields(relation.snapshot(resolved.cut).schema)]


def _roles(context: Context, sql: str, positions: list[int], num_columns: int) -> Roles:
    known_plans.check(context.spark.version, partial(_explained, context))
    readable = with_readable_strings(sql, tokenize(sql))
    plan = resolved_plan(_explained(context, readable))
    if plan is None and readable != sql:
        raise NotProved("has a string with a bracket, a backslash, a line break or `#` that determines a type")
    if plan is None or any("variablereference(" in each.text for each in plan.all()):
        raise NotProved("uses a variable" if plan is not None else "has a plan of an unknown form")
    return roles(plan, positions, num_columns)


def _explained(context: Context, sql: str) -> str:
    """Returns the plans of a query, with all columns."""
    conf = context.spark.conf
    before = conf.get(_SHOWN_FIELDS, None)
    conf.set(_SHOWN_FIELDS, _ALL_FIELDS)
    try:
        return str(context.spark.sql(f"explain extended\n{sql}").collect()[0][0])
    finally:
        if before is None:
            conf.unset(_SHOWN_FIELDS)
        else:
            conf.set(_SHOWN_FIELDS, before)


def _check_types(key: Iterable[StructField]) -> None:
    for each in key:
        kind = each.type
        if not isinstance(kind, DecimalType) and not (isinstance(kind, PrimitiveType) and kind.name in _KEY_TYPES):
            raise NotProved(f"has the key `{each.name}` of type {kind.sql_name}")


def _check_same(expected: Mapping[str, StructField], schema: StructType, table: str) -> None:
    """Checks that columns of a table have the types of the key, so that equal values have equal characters."""
    for name, key in expected.items():
        column = schema.field(name)
        if column is None:
            raise NotProved(f"has the key `{name}`, which is not a column of {table}")
        given, wanted = padded_type(key).sql_name, padded_type(column).sql_name
        if given != wanted:
            raise NotProved(f"has a key of the type {given}, but `{name}` of {table} has the type {wanted}")


def _check_mapping(
    clause: ChangedKeys, inputs: tuple[Table, ...], schemas: Sequence[StructType], key: tuple[str, ...]
) -> None:
    for name, columns in clause.inputs:
        mapped = [(each, schema) for each, schema in zip(inputs, schemas, strict=True) if _is_named(each, name)]
        if not mapped:
            raise InvalidStatementError(
                f"the query does not read a table `{'.'.join(name)}`, whose columns are given as its key",
                remedy="Name tables that the query or one of its views reads",
            )
        if len(columns) != len(key):
            raise InvalidStatementError(
                f"the key of `{'.'.join(name)}` needs as many columns as the key ({len(key)}), but has {len(columns)}"
            )
        for each, schema in mapped:
            for column in columns:
                schema.require(column, each.log.name)


def _check_mapped(clause: ChangedKeys, inputs: tuple[Table, ...], found: Roles) -> None:
    for name, columns in clause.inputs:
        expected = [column.lower() for column in columns]
        for number, places in found.items():
            given = [[each.lower() for each in place or ()] for place in places]
            if _is_named(inputs[number], name) and given != [expected]:
                named = ", ".join(map(quote, columns))
                raise NotProved(f"does not take its key from {named} of {inputs[number].log.name}")


def _is_named(table: Table, name: Name) -> bool:
    own, given = ([part.lower() for part in each] for each in (full_name(table.meaning.name), name))
    return own[-len(given) :] == given

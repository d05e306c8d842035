"""Compares a table with its model's definition, and writes the ALTER TABLE clauses that it needs.

A table model re-creates its table in each run. An incremental model and a snapshot keep their tables, so that later
changes of the definition must be applied to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list, split_name, string_literal
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, table_keys
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties, checked
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import Constraint, ConstraintKind, CreateTable
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.sql.query.column_names import column_names
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.materializations.partitioning import Clustering

_NOT_COMPARED = re.compile(r"delta\.(feature\..*|min(reader|writer)version)|comment", re.IGNORECASE)
"""The properties that request a change of the protocol or the columns, and are not stored as written."""

_NUMBERED_KEY = re.compile(r"(primary_key|unique|foreign_key)_\d+", re.IGNORECASE)
"""The generated name of an unnamed key."""

_NUMBERED = re.compile(r"check_\d+", re.IGNORECASE)
"""The generated name of an unnamed check."""


def alterations(
    schema: StructType, configuration: Mapping[str, str], properties: Mapping[str, Any], elements: Sequence[str]
) -> list[str]:
    """Returns the parts after `alter table t` of the statements that bring a table to its definition.

    Args:
        schema, configuration: the table's current columns and properties.
        properties: the config `tblproperties`.
        elements: the columns and constraints of the model's contract, as in CREATE TABLE; empty without a contract.

    Raises:
        InvalidPropertyError: if a property cannot be set.
        StatementSyntaxError: if a constraint is not valid SQL.
    """
    found = list(_of_properties(properties, configuration))
    if elements:
        contract = _contract(elements)
        found += _of_checks(contract.constraints, TableProperties(configuration).constraints)
        found += _of_keys(contract.constraints, table_keys(configuration))
        found += _of_columns({each.name.lower(): each.nullable for each in contract.columns}, schema)
    return found


def named_columns(elements: Sequence[str], wanted: Clustering) -> set[str]:
    """Returns the columns, in lower case, that constraints or clustering name: a table must have them first.

    Args:
        elements: the columns and constraints of the model's contract, as in CREATE TABLE; empty without a contract.
        wanted: the columns that the model's table is clustered by.
    """
    named = {split_name(each)[0] for each in wanted.columns}
    for constraint in _contract(elements).constraints if elements else ():
        named |= {each.parts[0] for each in column_names(tokenize(constraint.condition or ""))}
        named |= set(constraint.columns if constraint.enforced else ())
    return {each.lower() for each in named}


def of_clustering(there: Sequence[str], wanted: Clustering) -> list[str]:
    """Returns the part after `alter table t` that clusters a table by other columns, if it needs any.

    Args:
        there: the columns that the table is clustered by, as SQL spells them.
        wanted: the configs of the model; without either config, the table keeps its columns.
    """
    present = [tuple(part.lower() for part in split_name(each)) for each in there]
    columns = [tuple(part.lower() for part in split_name(each)) for each in wanted.columns]
    if not wanted.name or wanted.left_out or columns == present:
        return []
    return [f"cluster by ({', '.join(wanted.columns)})" if columns else "cluster by none"]


def _contract(elements: Sequence[str]) -> CreateTable:
    contract = parse(f"create table contract ({', '.join(elements)})")
    assert isinstance(contract, CreateTable), contract
    return contract


def _of_properties(properties: Mapping[str, Any], there: Mapping[str, str]) -> Iterator[str]:
    declared = checked({name: str(value) for name, value in properties.items()})
    changed = {
        name: value
        for name, value in declared.items()
        if not _NOT_COMPARED.fullmatch(name) and not _is_same(there.get(name), value)
    }
    if changed:
        pairs = (f"{string_literal(name)} = {string_literal(value)}" for name, value in changed.items())
        yield f"set tblproperties ({', '.join(pairs)})"


def _is_same(there: str | None, value: str) -> bool:
    """Returns whether two values are equal. The case of booleans is ignored: dbt renders YAML's `true` as `True`."""
    return there == value or (there is not None and there.lower() == value.lower() in ("true", "false"))


def _of_checks(declared: Iterable[Constraint], there: Mapping[str, str]) -> Iterator[str]:
    """Yields the checks to drop, then the checks to add.

    An unnamed check is recognised by its condition. A named check that is not in the model may belong to another owner,
    and is kept.
    """
    checks = [each for each in declared if each.kind is ConstraintKind.CHECK]
    left = {name.lower(): _plain(condition) for name, condition in there.items()}
    named = {each.name.lower(): _plain(each.condition) for each in checks if each.name}
    conditions = {_plain(each.condition) for each in checks if not each.name}
    for name, condition in list(left.items()):
        replaced = name in named and named[name] != condition
        if replaced or (name not in named and _NUMBERED.fullmatch(name) and condition not in conditions):
            del left[name]
            yield f"drop constraint {quote(name)}"
    for each in checks:
        if each.name and each.name.lower() not in left:
            yield f"add constraint {quote(each.name)} check ({each.condition}\n)"
        elif not each.name and _plain(each.condition) not in left.values():
            yield f"add check ({each.condition}\n)"


def _of_keys(declared: Iterable[Constraint], there: Mapping[str, Key]) -> Iterator[str]:
    """Yields the keys to drop, then the keys to add: their rows are checked then.

    A key is changed if it is enforced in the model or in the table, and not in the other. An enforced key that is not
    in the model may belong to another owner, and is kept unless its name was generated.
    """
    keys = {
        _key(each.kind.value, each.columns, each.references): each
        for each in declared
        if each.kind is not ConstraintKind.CHECK
    }
    add = {key: each for key, each in keys.items() if each.enforced}
    has_primary = any(each.kind is ConstraintKind.PRIMARY_KEY for each in add.values())
    for name, key in there.items():
        own = _key(key.kind.value, key.columns, key.references)
        if key.enforced and own in add:
            del add[own]
        elif own in add or (has_primary and key.kind is KeyKind.PRIMARY_KEY):
            yield f"drop constraint {quote(name)}"
        elif key.enforced and (own in keys or _NUMBERED_KEY.fullmatch(name)):
            yield f"drop constraint {quote(name)}"
            add |= {own: keys[own]} if own in keys else {}
    for each in add.values():
        named = f"constraint {quote(each.name)} " if each.name else ""
        parent = f" references {'.'.join(map(quote, each.references))}" if each.references else ""
        parent += f" ({quoted_list(each.referenced_columns)})" if each.referenced_columns else ""
        end = f"{parent}{' enforced' if each.enforced else ''}"
        yield f"add {named}{each.kind.value} ({quoted_list(each.columns)}){end}"


def _key(kind: str, columns: Iterable[str], references: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the words that identify a key; a reference can be written without its database."""
    return kind, tuple(name.lower() for name in (*columns, *references[-2:]))


def _of_columns(declared: Mapping[str, bool], schema: StructType) -> Iterator[str]:
    """Yields the columns whose NOT NULL differs in the contract."""
    for column in schema:
        if declared.get(column.name.lower(), column.nullable) != column.nullable:
            yield f"alter column {quote(column.name)} {'set' if column.nullable else 'drop'} not null"


def _plain(condition: str | None) -> str:
    return " ".join((condition or "").split())

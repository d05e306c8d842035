"""Records PRIMARY KEY, UNIQUE and FOREIGN KEY as table properties; a key is enforced if its definition says so.

The Delta format has no keys. Each key is a table property, `silt.constraints.<name>`, whose value is JSON:

    {"kind": "foreign key", "columns": ["customer_id"], "references": ["silt", "main", "customers"], "to": ["id"]}
    {"kind": "primary key", "columns": ["id"], "enforced": true}

An enforced foreign key to another table names the folder and the id of its parent too. The parent has a table property,
`silt.referencedBy.<id of the child>`, with the folder of the child, so that a commit to the parent finds its children.

Each commit of this package records that the enforced keys hold at its version, in the transaction identifier
`VERIFIED`, which survives checkpoints and the clean-up of the log (decision 0127).
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import (
    InvalidPropertyError,
    InvalidStatementError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list
from dbt.adapters.silt.engine.kernel.table.actions import Json, Metadata, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import inside
from dbt.adapters.silt.engine.kernel.table.properties import CHILD_PREFIX, KEY_PREFIX, TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DecimalType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import padded_type

VERIFIED: Final = "silt.keys"
"""The application id whose version is the last version whose enforced keys are known to hold."""

_COMPARED: Final = frozenset(
    "boolean byte short integer long float double string binary date timestamp timestamp_ntz".split()
)
"""The types of the columns of enforced keys, besides decimals; a string with a collation is another type."""


class KeyKind(enum.Enum):
    PRIMARY_KEY = "primary key"
    UNIQUE = "unique"
    FOREIGN_KEY = "foreign key"


@dataclass(frozen=True)
class Key:
    """A key of a table.

    Args:
        columns: names of top-level columns of the table.
        references: parts of the name of the table that a foreign key references; empty for other kinds.
        to: referenced columns; empty if the definition omits them.
        enforced: whether commits are refused whose rows break the key.
        location, parent_id: the folder, relative to the database's root, and the id of the table that an enforced
            foreign key references; empty if it is the key's own table.
    """

    kind: KeyKind
    columns: tuple[str, ...]
    references: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    enforced: bool = False
    location: str = ""
    parent_id: str = ""

    @property
    def is_of_itself(self) -> bool:
        """Whether it is an enforced foreign key of a table to itself."""
        return self.enforced and self.kind is KeyKind.FOREIGN_KEY and not self.parent_id

    @property
    def sql(self) -> str:
        """The key in SQL."""
        text = f"{self.kind.value.upper()} ({quoted_list(self.columns)})"
        if self.references:
            text += f" REFERENCES {'.'.join(map(quote, self.references))}"
        text = f"{text} ({quoted_list(self.to)})" if self.to else text
        return f"{text} ENFORCED" if self.enforced else text

    def to_json(self) -> str:
        """Returns the value of the table property."""
        target: dict[str, Json] = {"references": list(self.references), "to": list(self.to)}
        present = {name: value for name, value in target.items() if value}
        present |= {"enforced": True} if self.enforced else {}
        present |= {"location": self.location, "id": self.parent_id} if self.parent_id else {}
        body = {"kind": self.kind.value, "columns": list(self.columns), **present}
        return json.dumps(body, ensure_ascii=False)


def table_keys(configuration: Mapping[str, str]) -> dict[str, Key]:
    """Returns the keys of a table by name.

    Raises:
        InvalidPropertyError: if the property of a key cannot be read.
    """
    return {
        name[len(KEY_PREFIX) :]: _parsed(name, text)
        for name, text in configuration.items()
        if name.startswith(KEY_PREFIX)
    }


def enforced_keys(configuration: Mapping[str, str]) -> dict[str, Key]:
    """Returns the enforced primary keys and unique keys of a table by name. Raises as `table_keys`."""
    return _enforced(configuration, (KeyKind.PRIMARY_KEY, KeyKind.UNIQUE))


def enforced_references(configuration: Mapping[str, str]) -> dict[str, Key]:
    """Returns the enforced foreign keys of a table by name. Raises as `table_keys`."""
    return _enforced(configuration, (KeyKind.FOREIGN_KEY,))


def _enforced(configuration: Mapping[str, str], kinds: Sequence[KeyKind]) -> dict[str, Key]:
    return {name: key for name, key in table_keys(configuration).items() if key.enforced and key.kind in kinds}


def may_be_parent(configuration: Mapping[str, str]) -> bool:
    """Returns whether an enforced foreign key may reference the table, perhaps its own. Raises as `table_keys`."""
    is_of_itself = any(each.is_of_itself for each in enforced_references(configuration).values())
    return is_of_itself or bool(children(configuration))


def children(configuration: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns the folders and names of the tables that may have enforced foreign keys to this table, by their ids.

    Raises:
        InvalidPropertyError: if a property cannot be read.
    """
    found = {}
    for name, text in configuration.items():
        if name.startswith(CHILD_PREFIX):
            try:
                folder, table = _names(foreign_json.loads(text))
                found[name[len(CHILD_PREFIX) :]] = inside(folder), table
            except (ValueError, TypeError) as error:
                raise InvalidPropertyError(f"the table property `{name}` does not name a table: {text}") from error
    return found


def with_child(metadata: Metadata, child_id: str, child: tuple[str, str]) -> Metadata:
    """Returns the metadata of a table to which a child has an enforced foreign key.

    Args:
        child: its folder, relative to the database's root, and its name.
    """
    text = json.dumps(child, ensure_ascii=False)
    return replace(metadata, configuration={**metadata.configuration, f"{CHILD_PREFIX}{child_id}": text})


def with_children_of(metadata: Metadata, before: Metadata) -> Metadata:
    """Returns new metadata of a table with the children that it has had before."""
    lost = {
        name: folder
        for name, folder in before.configuration.items()
        if name.startswith(CHILD_PREFIX) and name not in metadata.configuration
    }
    return replace(metadata, configuration={**metadata.configuration, **lost}) if lost else metadata


def of_a_copy(configuration: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties for a copy of a table: its foreign keys are recorded, and no table references the copy."""
    recorded = {
        name: replace(key, enforced=False, location="", parent_id="")
        for name, key in enforced_references(configuration).items()
    }
    kept = {name: value for name, value in configuration.items() if not name.startswith(CHILD_PREFIX)}
    return {**kept, **key_properties(recorded)}


def same_keys(before: Metadata, after: Metadata) -> bool:
    """Returns whether every enforced key of a table was enforced before, for the same columns with the same types."""
    return _definitions(after) <= _definitions(before)


def _definitions(metadata: Metadata) -> set[tuple[KeyKind, tuple[tuple[str, Any], ...]]]:
    schema = StructType.from_json(metadata.schema_string)
    fields = {
        key: [schema.require(name) for name in key.columns] for key in enforced_keys(metadata.configuration).values()
    }
    return {
        (key.kind, tuple((each.physical_name, padded_type(each)) for each in found)) for key, found in fields.items()
    }


def unverified_since(transactions: Mapping[str, SetTransaction], version: int) -> int | None:
    """Returns the first version whose enforced keys are not known to hold, or None if they hold at this version."""
    recorded = transactions.get(VERIFIED)
    if recorded is None or not 0 <= recorded.version <= version:
        return 0
    return None if recorded.version == version else recorded.version + 1


def enforcement(key: Key, transactions: Mapping[str, SetTransaction], version: int) -> str:
    """Returns whether a key is enforced, for users: another engine may have added rows that break it."""
    if not key.enforced:
        return "not enforced"
    since = unverified_since(transactions, version)
    if since is not None:
        return f"enforced, but unverified since version {since}"
    return "enforced" if key.kind is not KeyKind.FOREIGN_KEY else "enforced, as far as the key that it references"


def constraint_names(configuration: Mapping[str, str]) -> list[str]:
    """Returns the names of all constraints of a table: its keys and its CHECK constraints."""
    return [*table_keys(configuration), *TableProperties(configuration).constraints]


def checked_keys(keys: Mapping[str, Key], schema: StructType, table: str, there: Iterable[Key] = ()) -> dict[str, Key]:
    """Checks new keys of a table, and spells their columns as in the schema.

    Args:
        there: existing keys of the table.

    Raises:
        ColumnNotFoundError: if a column of a key does not exist.
        InvalidStatementError: if there would be two primary keys, or a foreign key has another number of columns than
            it references.
        UnsupportedStatementError: if an enforced key has a column whose values cannot be compared.
    """
    kinds = [key.kind for key in (*there, *keys.values())]
    if kinds.count(KeyKind.PRIMARY_KEY) > 1:
        raise InvalidStatementError("a table can have only one primary key", remedy="Remove one of them", table=table)
    for name, key in keys.items():
        if not key.columns or (key.to and len(key.to) != len(key.columns)):
            raise InvalidStatementError(
                f"the key `{name}` has {len(key.columns)} columns and references {len(key.to)}",
                remedy="Name as many columns as it references",
                table=table,
            )
        for column in key.columns if key.enforced else ():
            _check_compared(name, schema.require(column, table), table)
    return {
        name: replace(
            key,
            columns=_spelled(key.columns, schema, table),
            to=_spelled(key.to, schema, table) if key.is_of_itself else key.to,
        )
        for name, key in keys.items()
    }


def _spelled(columns: Iterable[str], schema: StructType, table: str) -> tuple[str, ...]:
    return tuple(schema.require(column, table).name for column in columns)


def _check_compared(name: str, field: StructField, table: str) -> None:
    if isinstance(field.type, DecimalType) or (isinstance(field.type, PrimitiveType) and field.type.name in _COMPARED):
        return
    raise UnsupportedStatementError(
        f"the key `{name}` cannot be enforced: its column `{field.name}` has the type {field.type.sql_name}",
        remedy="Choose columns of numbers, texts without a collation, dates or times, or leave ENFORCED out",
        table=table,
    )


def key_properties(keys: Mapping[str, Key]) -> dict[str, str]:
    """Returns the table properties that record keys."""
    return {f"{KEY_PREFIX}{name}": key.to_json() for name, key in keys.items()}


def with_renamed_columns(metadata: Metadata, renames: Mapping[tuple[str, ...], str]) -> Metadata:
    """Returns the metadata with renamed columns in its keys; `renames` maps old paths to new names."""
    new_names = {path[0].lower(): name for path, name in renames.items() if len(path) == 1}
    keys = table_keys(metadata.configuration)
    renamed = {
        name: replace(
            key,
            columns=tuple(new_names.get(column.lower(), column) for column in key.columns),
            to=tuple(new_names.get(column.lower(), column) if key.is_of_itself else column for column in key.to),
        )
        for name, key in keys.items()
    }
    return replace(metadata, configuration={**metadata.configuration, **key_properties(renamed)})


def without_columns(metadata: Metadata, gone: Sequence[Sequence[str]]) -> Metadata:
    """Returns the metadata without the keys on dropped columns, given by their paths."""
    dropped = {path[0].lower() for path in gone if len(path) == 1}
    lost = {
        f"{KEY_PREFIX}{name}"
        for name, key in table_keys(metadata.configuration).items()
        if dropped.intersection(column.lower() for column in key.columns)
    }
    kept = {name: text for name, text in metadata.configuration.items() if name not in lost}
    return replace(metadata, configuration=kept)


def check_droppable(metadata: Metadata, gone: Sequence[Sequence[str]], table: str) -> None:
    """Checks that no column of an enforced key is dropped: the key would be lost silently.

    Args:
        gone: paths of the columns to drop.

    Raises:
        UnsupportedStatementError: if a column belongs to an enforced key.
    """
    dropped = {path[0].lower() for path in gone if len(path) == 1}
    for name, key in table_keys(metadata.configuration).items():
        if key.enforced and dropped.intersection(column.lower() for column in key.columns):
            raise UnsupportedStatementError(
                f"a column of the enforced key `{name}`, {key.sql}, cannot be dropped",
                remedy=f"Drop the key first: alter table ... drop constraint {quote(name)}",
                table=table,
            )


def _parsed(name: str, text: str) -> Key:
    try:
        body = foreign_json.loads(text)
        columns, references, to = (_names(body.get(member, [])) for member in ("columns", "references", "to"))
        location = str(body.get("location", ""))
        of_parent = location and inside(location), str(body.get("id", ""))
        return Key(KeyKind(body["kind"]), columns, references, to, body.get("enforced") is True, *of_parent)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidPropertyError(
            f"the table property `{name}` does not contain a key: {text}",
            remedy=f"Drop it: alter table ... drop constraint `{name[len(KEY_PREFIX) :]}`",
        ) from error


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError("not a list of names")
    return tuple(value)

"""Which statements leave something in a table of ours that doing them once more would do twice.

Those are what a program that repeats itself gives a transaction identifier to. The others need none, or can have none:

- queries, and views, functions and schemas, which are the same when they are made again;
- OPTIMIZE and VACUUM, which change no rows, and find nothing to do where nothing came since;
- DROP, which ends the table's memory, and so what would be remembered; RENAME, after which the name is gone.

RESTORE is among the first: once more, it would undo what came after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name, ObjectKind, Statement


class Effect(Enum):
    """What a statement changes of a table."""

    ROWS = "its rows, or whether it is there"
    METADATA = "its columns, constraints, properties or comments"


@dataclass(frozen=True)
class Written:
    """The table that a statement changes; `table` is None where the statement names it by its path."""

    table: RelationName | None
    effect: Effect


def effect_of(statement: Statement) -> Effect | None:
    """What the statement changes of the table that `name_of` gives; None where it leaves nothing in one."""
    effect = _EFFECTS.get(type(statement))
    kind = getattr(statement, "kind", ObjectKind.TABLE)
    return None if kind not in (ObjectKind.TABLE, ObjectKind.COLUMN) else effect


def name_of(statement: Statement) -> Name:
    """The table that a statement with an effect names."""
    name: Name = getattr(statement, "table", ()) or getattr(statement, "name", ())
    return name[:-1] if getattr(statement, "kind", None) is ObjectKind.COLUMN else name


_EFFECTS: Final[Mapping[type[Statement], Effect]] = {
    **dict.fromkeys(
        (
            ast.CreateTable,
            ast.CreateTableLike,
            ast.Clone,
            ast.Insert,
            ast.Delete,
            ast.Update,
            ast.Merge,
            ast.Truncate,
            ast.Restore,
            ast.WriteRows,
        ),
        Effect.ROWS,
    ),
    **dict.fromkeys(
        (
            ast.AddColumns,
            ast.DropColumns,
            ast.AlterColumns,
            ast.SetProperties,
            ast.UnsetProperties,
            ast.AddConstraint,
            ast.DropConstraint,
            ast.CommentOn,
        ),
        Effect.METADATA,
    ),
}

"""Defines the result of a scan of SQL text: its tables, function calls, names of columns, and SELECTs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.query.parts import Part
from dbt.adapters.silt.engine.sql.query.table_functions import DifferenceCall, FilesCall


@dataclass(frozen=True)
class Reference:
    """A reference to a table or view.

    `text[start:end]` is its name with time travel and WITH (options). `alias_at` is the position for an alias, after a
    TABLESAMPLE; None if no alias is possible. `version` and `timestamp` are SQL. For a call of a table function,
    `changes` are the bounds of `table_changes`, which reads the recorded changes of the table's versions, `difference`
    has the options of `silt_changes`, and `files` is a call of `read_files`. `query_at` is the position of TABLE if the
    query is TABLE and this name.
    """

    parts: Name
    start: int
    end: int
    alias: str | None = None
    alias_at: int | None = None
    version: str | None = None
    timestamp: str | None = None
    options: str | None = None
    changes: tuple[str, ...] | None = None
    difference: DifferenceCall | None = None
    files: FilesCall | None = None
    query_at: int | None = None

    @property
    def reads_changes(self) -> bool:
        """Whether it is a call that reads the changes of a table."""
        return self.changes is not None or self.difference is not None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The SQL of the versions and times that it names."""
        changes = (self.changes or ()) if self.difference is None else self.difference.bounds
        return tuple(text for text in (self.version, self.timestamp, *changes) if text is not None)

    @property
    def is_path(self) -> bool:
        return ast.is_path(self.parts)


@dataclass(eq=False)
class Scope:
    """The possible qualifiers of a SELECT's columns: its references, and the names of all its relations."""

    parent: Scope | None
    references: list[Reference] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Chain:
    """A dotted name in an expression: parts in lower case, the span of each part, and the query that contains it."""

    parts: Name
    spans: tuple[tuple[int, int], ...]
    scope: Scope | None
    has_star: bool

    @property
    def most_qualifiers(self) -> int:
        """The number of parts that may name a table: all before `.*`, otherwise all but the column."""
        return len(self.parts) if self.has_star else len(self.parts) - 1


@dataclass(frozen=True)
class Call:
    """A call of any function: `text[start:end]` is the function's name.

    `alias_at` is the position for an alias, if the function is used as a table without an alias.
    """

    parts: Name
    start: int
    end: int
    alias_at: int | None = None


@dataclass(frozen=True)
class Block:
    """A SELECT with its clauses: the tokens from `first` up to, not including, `after`."""

    first: int
    after: int
    scope: Scope
    parts: tuple[Part, ...]

    @property
    def spans(self) -> list[tuple[Part, int]]:
        """The parts, each with the index after its last token."""
        return list(zip(self.parts, [*(part.at for part in self.parts[1:]), self.after], strict=True))


@dataclass(frozen=True)
class Scan:
    """The result of a scan."""

    references: tuple[Reference, ...]
    chains: tuple[Chain, ...]
    calls: tuple[Call, ...]
    scopes: Mapping[Reference, Scope]
    blocks: tuple[Block, ...]

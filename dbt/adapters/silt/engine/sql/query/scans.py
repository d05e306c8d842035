"""Values of a scan: the tables that a text reads, functions that it calls, names of columns, and its SELECTs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.query.parts import Part
from dbt.adapters.silt.engine.sql.query.table_functions import FilesCall


@dataclass(frozen=True)
class Reference:
    """One reference of a text to a table or view.

    `text[start:end]` is its name with time travel and WITH (options). An alias would go to `alias_at`, which lies
    behind a TABLESAMPLE; it is None where there can be none. `version` and `timestamp` are SQL text. Of a call of a
    table function, `changes` are the bounds of `table_changes`, which reads what versions of the table changed, and
    `files` is a call of `read_files`.
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
    files: FilesCall | None = None

    @property
    def is_path(self) -> bool:
        return ast.is_path(self.parts)


@dataclass(eq=False)
class Scope:
    """What the columns of one SELECT can be qualified by: its references, and the names of all its relations."""

    parent: Scope | None
    references: list[Reference] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Chain:
    """A dotted name in an expression: parts in lower case, the span of each, and the query that it is in."""

    parts: Name
    spans: tuple[tuple[int, int], ...]
    scope: Scope | None
    has_star: bool

    @property
    def most_qualifiers(self) -> int:
        """How many of the parts may name a table: all before `.*`, else all but the column."""
        return len(self.parts) if self.has_star else len(self.parts) - 1


@dataclass(frozen=True)
class Call:
    """One call of a function, whichever it is: `text[start:end]` is the function's name.

    `alias_at` is where an alias would go, where the function is used as a table and has none.
    """

    parts: Name
    start: int
    end: int
    alias_at: int | None = None


@dataclass(frozen=True)
class Block:
    """One SELECT with its clauses: the tokens from `first` up to, not including, `after`."""

    first: int
    after: int
    scope: Scope
    parts: tuple[Part, ...]

    @property
    def spans(self) -> list[tuple[Part, int]]:
        """The parts, each with the index behind its last token."""
        return list(zip(self.parts, [*(part.at for part in self.parts[1:]), self.after], strict=True))


@dataclass(frozen=True)
class Scan:
    """What the scan of a text found."""

    references: tuple[Reference, ...]
    chains: tuple[Chain, ...]
    calls: tuple[Call, ...]
    scopes: Mapping[Reference, Scope]
    blocks: tuple[Block, ...]

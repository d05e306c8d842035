"""Which tables and functions a query or an expression names, and where.

A scanner over tokens, not a parser: it follows parentheses, FROM lists, joins, WITH and set operations, and steps over
everything else, so that it stays right for expressions it has never heard of and keeps the text verbatim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.query.scanner import scan
from dbt.adapters.silt.engine.sql.query.scans import Call, Chain, Reference, Scope

T = TypeVar("T")

__all__ = ["Call", "Reference", "Replacement", "function_calls", "rewrite", "table_references"]


@dataclass(frozen=True)
class Replacement:
    """What a reference becomes.

    `sql` takes the place of the name, its time travel and options. `name` is the table's full name, by whose last
    two or more parts the text may qualify columns; empty stands for the parts as they are written.
    """

    sql: str
    name: Name = ()


def table_references(text: str) -> tuple[Reference, ...]:
    """The tables and views that a query, or the subqueries of an expression, read: in the order of the text.

    Common table expressions, aliases and table-valued functions are left out.

    Raises:
        StatementSyntaxError: the text cannot be split into tokens, or quotes a name as a string.
        UnsupportedStatementError: IDENTIFIER(...) stands where a table's name does.
    """
    return scan(text).references


def function_calls(text: str) -> tuple[Call, ...]:
    """The functions that a query or an expression calls, Spark's own among them; raises as `table_references` does."""
    return scan(text).calls


def rewrite(
    text: str,
    replacements: Mapping[Reference, Replacement],
    outer: Mapping[Name, str] | None = None,
    functions: Mapping[Call, str] | None = None,
) -> str:
    """The text with references and called functions replaced, meaning the same.

    A replaced reference without an alias gets its own last part as one, and columns that were qualified by more of
    the name (`schema.table.column`) are qualified by that alias.

    Args:
        text: a query or an expression.
        replacements: by reference, as `table_references` of this text gave them.
        outer: for an expression, the tables around it by full name, with the identifier that qualifies their
            columns from now on.
        functions: by call, as `function_calls` of this text gave them, the identifier of the function to call instead.
    """
    found = scan(text)
    aliases = {reference: _alias(reference, scope) for reference, scope in found.scopes.items()}
    edits = [edit for reference in replacements for edit in _reference_edits(reference, replacements, aliases)]
    for chain in found.chains:
        qualifier = _new_qualifier(chain, replacements, aliases, outer or {})
        if qualifier is not None:
            length, identifier = qualifier
            edits.append((chain.spans[0][0], chain.spans[length - 1][1], quote(identifier)))
    for call, identifier in (functions or {}).items():
        edits.append((call.start, call.end, quote(identifier)))
        if call.alias_at is not None:
            edits.append((call.alias_at, call.alias_at, f" AS {quote(call.parts[-1])}"))
    return _edited(text, edits)


Edit = tuple[int, int, str]


def _alias(reference: Reference, scope: Scope) -> str:
    """The identifier that qualifies the reference's columns: its alias, or the one that it gets.

    Two tables of one FROM with the same last part, from different schemas, get theirs from all their parts.
    """
    if reference.alias is not None:
        return reference.alias
    same = [r for r in scope.references if r.alias is None and r.parts[-1].lower() == reference.parts[-1].lower()]
    return reference.parts[-1] if len(same) < 2 or len(set(same)) < 2 else ".".join(reference.parts)


def _reference_edits(
    reference: Reference, replacements: Mapping[Reference, Replacement], aliases: Mapping[Reference, str]
) -> list[Edit]:
    sql = replacements[reference].sql
    if reference.alias is not None or reference.alias_at is None:
        return [(reference.start, reference.end, sql)]
    alias = f" AS {quote(aliases[reference])}"
    if reference.alias_at == reference.end:
        return [(reference.start, reference.end, sql + alias)]
    return [(reference.start, reference.end, sql), (reference.alias_at, reference.alias_at, alias)]


def _new_qualifier(
    chain: Chain,
    replacements: Mapping[Reference, Replacement],
    aliases: Mapping[Reference, str],
    outer: Mapping[Name, str],
) -> tuple[int, str] | None:
    """How many of the chain's parts name a replaced table, and the identifier to put there.

    As in Spark, the innermost query that knows the name decides, and the longest qualifier wins.
    """
    scope: Scope | None = chain.scope
    while scope is not None:
        named = [(_name(r, replacements), r) for r in scope.references if r.alias is None]
        match = _longest_match(chain, named, least=2)
        if match is not None:
            length, reference = match
            return (length, aliases[reference]) if reference in replacements else None
        if chain.parts[0] in scope.names:
            return None
        scope = scope.parent
    return _longest_match(chain, list(outer.items()), least=1)


def _name(reference: Reference, replacements: Mapping[Reference, Replacement]) -> Name:
    replacement = replacements.get(reference)
    return reference.parts if replacement is None or not replacement.name else replacement.name


def _longest_match(chain: Chain, named: list[tuple[Name, T]], least: int) -> tuple[int, T] | None:
    for length in range(chain.most_qualifiers, least - 1, -1):
        for name, thing in named:
            if len(name) >= length and tuple(part.lower() for part in name[-length:]) == chain.parts[:length]:
                return length, thing
    return None


def _edited(text: str, edits: list[Edit]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(edits):
        pieces += (text[done:start], new)
        done = end
    return "".join(pieces) + text[done:]

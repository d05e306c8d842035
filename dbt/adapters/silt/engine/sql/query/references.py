"""Finds the tables and functions that a query or an expression names, and replaces them.

A scanner over tokens, not a parser: it follows parentheses, FROM lists, joins, WITH and set operations, and skips
everything else, so that it remains correct for unknown expressions and keeps the text verbatim. A `ScannedText` is
scanned only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.query.scanner import scan
from dbt.adapters.silt.engine.sql.query.scans import Call, Chain, Reference, Scan, Scope
from dbt.adapters.silt.engine.sql.spans import Edit, Tokens, edited
from dbt.adapters.silt.engine.sql.tokens import tokenize

T = TypeVar("T")

__all__ = ["Call", "Reference", "Replacement", "function_calls", "rewrite", "table_references"]


@dataclass(frozen=True)
class Replacement:
    """The replacement of a reference.

    `sql` replaces the name, its time travel and options. `name` is the table's full name, whose last two or more parts
    may qualify columns in the text; empty means the parts as written.
    """

    sql: str
    name: Name = ()


@dataclass(frozen=True)
class ScannedText:
    """The text of a query or an expression, scanned at the first access.

    Raises, from `tokens` and `scan`:
        StatementSyntaxError: if the text cannot be split into tokens, or quotes a name as a string.
        UnsupportedStatementError: if IDENTIFIER(...) hides a table's name, or parentheses are nested too deep.
    """

    sql: str

    @cached_property
    def tokens(self) -> Tokens:
        return tokenize(self.sql)

    @cached_property
    def scan(self) -> Scan:
        return scan(self.sql, self.tokens)


def table_references(text: str) -> tuple[Reference, ...]:
    """Returns the tables and views that a query, or the subqueries of an expression, read, in the order of the text.

    Common table expressions, aliases and table-valued functions are left out.

    Raises:
        StatementSyntaxError: if the text cannot be split into tokens, or quotes a name as a string.
        UnsupportedStatementError: if IDENTIFIER(...) is used for a table's name.
    """
    return scanned(text).scan.references


def function_calls(text: str) -> tuple[Call, ...]:
    """Returns the functions that a query or an expression calls, even those of Spark; raises as `table_references`."""
    return scanned(text).scan.calls


def rewrite(
    text: ScannedText,
    replacements: Mapping[Reference, Replacement],
    outer: Mapping[Name, str] | None = None,
    functions: Mapping[Call, str] | None = None,
) -> str:
    """Replaces references and called functions without changing the meaning of the text.

    A replaced reference without an alias gets its own last part as its alias, and columns that were qualified by more
    parts of the name (`schema.table.column`) are qualified by that alias.

    Args:
        text: a query or an expression.
        replacements: replacements by reference, as returned by `table_references` for this text.
        outer: for an expression, the full names of the tables around it -> the new identifier that qualifies their
            columns.
        functions: calls, as returned by `function_calls` for this text -> the identifier of the function to call
            instead.
    """
    found = text.scan
    aliases = _aliases(found.scopes)
    edits = [edit for reference in replacements for edit in _reference_edits(reference, replacements, aliases)]
    for chain in found.chains:
        qualifier = _new_qualifier(chain, replacements, aliases, outer or {})
        if qualifier is not None:
            length, identifier = qualifier
            edits.append(Edit(chain.spans[0][0], chain.spans[length - 1][1], quote(identifier)))
    for call, identifier in (functions or {}).items():
        edits.append(Edit(call.start, call.end, quote(identifier)))
        if call.alias_at is not None:
            edits.append(Edit(call.alias_at, call.alias_at, f" AS {quote(call.parts[-1])}"))
    return edited(text.sql, edits)


def _aliases(scopes: Mapping[Reference, Scope]) -> Mapping[Reference, str]:
    """Returns the identifiers that qualify the columns of each reference: its alias, or the name that it gets.

    If two tables of a FROM, from different schemas, have the same last part, their identifiers consist of all their
    parts.
    """
    names: dict[int, Counter[str]] = {}
    for scope in scopes.values():
        if id(scope) not in names:
            names[id(scope)] = Counter(each.parts[-1].lower() for each in set(scope.references) if each.alias is None)
    return {each: _alias(each, names[id(scope)]) for each, scope in scopes.items()}


def _alias(reference: Reference, names: Mapping[str, int]) -> str:
    if reference.alias is not None:
        return reference.alias
    last = reference.parts[-1]
    return last if names[last.lower()] < 2 else ".".join(reference.parts)


def _reference_edits(
    reference: Reference, replacements: Mapping[Reference, Replacement], aliases: Mapping[Reference, str]
) -> list[Edit]:
    sql, alias = replacements[reference].sql, f" AS {quote(aliases[reference])}"
    if reference.query_at is not None:
        # TABLE accepts a name only, and no parentheses around it in a FROM.
        return [Edit(reference.query_at, reference.end, f"SELECT * FROM {sql}{alias}")]
    if reference.alias is not None or reference.alias_at is None:
        return [Edit(reference.start, reference.end, sql)]
    if reference.alias_at == reference.end:
        return [Edit(reference.start, reference.end, sql + alias)]
    return [Edit(reference.start, reference.end, sql), Edit(reference.alias_at, reference.alias_at, alias)]


def _new_qualifier(
    chain: Chain,
    replacements: Mapping[Reference, Replacement],
    aliases: Mapping[Reference, str],
    outer: Mapping[Name, str],
) -> tuple[int, str] | None:
    """Returns the number of the chain's parts that name a replaced table, and the identifier to replace them with.

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


@lru_cache(maxsize=256)
def scanned(sql: str) -> ScannedText:
    """Returns the cached scan of the text: every statement that reads a view expands it again."""
    return ScannedText(sql)

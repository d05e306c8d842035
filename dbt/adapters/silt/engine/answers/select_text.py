"""Parses a query that is a single SELECT: over one table, with a condition and a limit, or of literals only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions.conditions import Operand
from dbt.adapters.silt.engine.sql.conditions.predicates import column_path
from dbt.adapters.silt.engine.sql.query.references import ScannedText
from dbt.adapters.silt.engine.sql.query.scans import Block, Reference
from dbt.adapters.silt.engine.sql.query.selects import read_select
from dbt.adapters.silt.engine.sql.spans import Tokens, after_group
from dbt.adapters.silt.engine.sql.tokens import Kind, Token

_KEYWORDS = ("SELECT", "FROM", "WHERE", "LIMIT")
_NOT_A_LIST = frozenset(("DISTINCT", "ALL", "TRANSFORM", "STRUCT"))
_LARGEST = (1 << 31) - 1


@dataclass(frozen=True)
class ListedColumn:
    """An item of a SELECT list that is a column.

    Attributes:
        path: its name as written, with its qualifiers.
        name: the name of the result's column.
    """

    path: Name
    name: str


@dataclass(frozen=True)
class TableSelect:
    """A SELECT over a single table.

    Attributes:
        columns: its list, if it has only columns; empty for `*`.
        where: the SQL of its condition.
        version: the requested version of the table, if any.
    """

    text: ScannedText
    reference: Reference
    columns: tuple[ListedColumn, ...] | None
    where: str | None = None
    limit: int | None = None
    version: int | None = None


def table_select(text: ScannedText) -> TableSelect | None:
    """Returns the SELECT, or None if the text is another query, or its result depends on more than the table."""
    if len(text.scan.blocks) != 1 or len(text.scan.references) != 1:
        return None
    (block,), (reference,) = text.scan.blocks, text.scan.references
    select = read_select(text.tokens, block)
    is_whole = (block.first, block.after) == (0, len(text.tokens) - 1) and _is_plain(block)
    if select is None or not is_whole or len(select.items) != 1 or not select.items[0].is_plain:
        return None
    if any(token.kind is Kind.HINT for token in text.tokens) or not _is_table(reference):
        return None
    spans = {part.keyword: (part.first, after) for part, after in block.spans}
    limit = _number(text.tokens[slice(*spans["LIMIT"])]) if "LIMIT" in spans else None
    if "LIMIT" in spans and limit is None:
        return None
    where = _between(text, *spans["WHERE"]) if "WHERE" in spans else None
    version = None if reference.version is None else int(reference.version)
    return TableSelect(text, reference, _columns(text.tokens, *spans["SELECT"]), where, limit, version)


def _is_plain(block: Block) -> bool:
    """Returns whether its clauses are only the clauses known here, each once and in their order."""
    keywords = [part.keyword for part in block.parts]
    return keywords == [keyword for keyword in _KEYWORDS if keyword in keywords] and "FROM" in keywords


def _is_table(reference: Reference) -> bool:
    is_named = not reference.is_path and reference.options is None and not reference.reads_changes
    has_number = reference.version is None or reference.version.isdecimal()
    return is_named and reference.files is None and reference.timestamp is None and has_number


def _number(tokens: Tokens) -> int | None:
    if len(tokens) != 1 or not tokens[0].text.isdecimal() or int(tokens[0].text) > _LARGEST:
        return None
    return int(tokens[0].text)


def _between(text: ScannedText, first: int, after: int) -> str:
    return text.sql[text.tokens[first].start : text.tokens[after - 1].end]


def _columns(tokens: Tokens, first: int, after: int) -> tuple[ListedColumn, ...] | None:
    if first >= after or tokens[first].word in _NOT_A_LIST:
        return None
    if after - first == 1 and tokens[first].word == "*":
        return ()
    found = [_column(tokens, start, end) for start, end in _items(tokens, first, after)]
    known = tuple(column for column in found if column is not None)
    return known if len(known) == len(found) else None


def _items(tokens: Tokens, first: int, after: int) -> Iterator[tuple[int, int]]:
    at = first
    while at < after:
        if tokens[at].word == ",":
            yield first, at
            first = at + 1
        at = after_group(tokens, at) if tokens[at].word == "(" else at + 1
    yield first, after


def _column(tokens: Tokens, first: int, after: int) -> ListedColumn | None:
    """Parses `column`, `column AS name` or `column name`, whose column may be qualified by the table's name."""
    end, alias = after, None
    if after - first >= 2 and tokens[after - 1].is_identifier and tokens[after - 2].word != ".":
        alias = tokens[after - 1].identifier
        end = after - 2 if tokens[after - 2].word == "AS" else after - 1
    path = column_path(tokens, Operand(first, end)) if end > first else None
    return None if path is None else ListedColumn(path, alias or path[-1])


def literal_select(text: ScannedText) -> dict[str, int | str] | None:
    """Returns the values of a SELECT of integers and strings without a table, by the names of its columns.

    A limit above 0 may follow.

    Returns:
        None if the text is another query, or an item is neither a number of at most 31 bits nor a string without a
        backslash and a quotation mark. An alias needs AS.
    """
    tokens = text.tokens[:-1]
    if not tokens or tokens[0].word != "SELECT" or any(token.kind is Kind.HINT for token in tokens):
        return None
    if tokens[-2:-1] and tokens[-2].word == "LIMIT" and _number(tokens[-1:]):
        tokens = tokens[:-2]
    found: dict[str, int | str] = {}
    items = list(_items(tokens, 1, len(tokens)))
    for first, after in items:
        item = tokens[first:after]
        named = len(item) == _WITH_ALIAS and item[1].word == "AS" and item[2].is_identifier
        value = _literal(item[0]) if named or len(item) == 1 else None
        if value is None:
            return None
        found[item[2].identifier if named else str(value)] = value
    are_distinct = len({name.lower() for name in found}) == len(items)
    return found if are_distinct else None


_WITH_ALIAS = 3


def _literal(token: Token) -> int | str | None:
    if token.kind is Kind.NUMBER:
        is_plain = token.text.isdecimal() and token.text == str(int(token.text))
        return int(token.text) if is_plain and int(token.text) <= _LARGEST else None
    value = token.text[1:-1]
    return value if token.kind is Kind.STRING and token.text[0] == "'" and not {"'", "\\"} & set(value) else None

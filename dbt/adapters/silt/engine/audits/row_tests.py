"""Proves that an audit looks at each row by itself, so that the pass that writes the rows can judge them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.audits.audit import Audit
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list
from dbt.adapters.silt.engine.kernel.log.builds import facts_hash
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import has_char
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.query.column_names import ColumnName, column_names
from dbt.adapters.silt.engine.sql.query.references import scanned
from dbt.adapters.silt.engine.sql.query.rule_texts import OF_CHANCE
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.sql.query.selects import Select, read_select
from dbt.adapters.silt.engine.sql.query.unrepeatable import OF_THE_SESSION, OF_THE_TIME, unrepeatable
from dbt.adapters.silt.engine.sql.spans import Edit, Tokens, edited
from dbt.adapters.silt.engine.sql.tokens import Kind, Token

_COUNT = "count(*)"
_TWICE = "count(*)>1"
_OTHER_QUERIES = frozenset("SELECT FROM VALUES TABLE WITH EXISTS OVER IDENTIFIER".split())
_IN_LIST = frozenset(("", ",", ".", "*", "AS"))
_ONLY = frozenset(("WHERE",))
_VOLATILE = OF_CHANCE | OF_THE_TIME | OF_THE_SESSION


@dataclass(frozen=True)
class RowTest:
    """A test of each row by itself.

    Attributes:
        key: identifies the test, and whatever determines its verdict on a row.
        name: the audit's name.
        table: the name of the table in the query.
        condition: SQL that is true for a failing row; it names the table's columns without a qualifier.
        columns: the columns that the audit's query names, in lower case.
        qualifiers: the words that qualify them in the query, in lower case.
        is_repeatable: whether a row that passed once passes always.
        routes: whether a row that fails is written to other files than the rows that pass.
        constraint: the name of the CHECK constraint that the rows that fail break, if it leaves them out.
    """

    key: str
    name: str
    table: Name
    condition: str
    columns: frozenset[str]
    qualifiers: frozenset[str]
    is_repeatable: bool
    routes: bool = False
    constraint: str | None = None

    @property
    def failing(self) -> str:
        """SQL that is true or false for a row; as in a query's WHERE, the condition must be a Boolean."""
        return f"if(({self.condition}\n), true, false)"

    def fits(self, schema: StructType) -> bool:
        """Returns whether the condition means the same for a row of these columns that is about to be written."""
        names = {each.lower() for each in schema.names}
        return self.columns <= names and not self.qualifiers & names and not any(map(has_char, schema))


def row_test(audit: Audit, table: Name, time_zone: str) -> RowTest | None:
    """Returns the test if the audit counts the rows of the table for which a condition is true, by its form alone:
    `select ... from table where condition`, without a call in the list and without another clause.

    Args:
        table: the table's full name.
        time_zone: the time zone of the session.
    """
    if "".join(audit.fail_calc.lower().split()) != _COUNT or audit.limit == 0:
        return None
    try:
        return _proved(audit, table, time_zone)
    except (StatementSyntaxError, UnsupportedStatementError):
        return None


def expectation(name: str, condition: str, table: Name, time_zone: str) -> RowTest | None:
    """Returns the test of a CHECK constraint that leaves out the rows that break it: a null breaks it too.

    Args:
        table, time_zone: as in `row_test`.
    """
    text = ".".join(map(quote, table))
    found = row_test(Audit(name, f"select * from {text} where ({condition}\n) is not true"), table, time_zone)
    return None if found is None else replace(found, routes=True, constraint=name)


@dataclass(frozen=True)
class KeyTest:
    """A test that no key occurs twice, which fails for all rows of a repeated key.

    Attributes:
        columns: the columns of the key.
        counted: the test of each row whether it counts: a row that "fails" is looked at.
    """

    key: str
    name: str
    columns: tuple[str, ...]
    counted: RowTest

    @property
    def repeated(self) -> str:
        """The query of the keys that occur twice."""
        listed, table = quoted_list(self.columns), ".".join(map(quote, self.counted.table))
        return f"select {listed} from {table} where ({self.counted.condition}\n) group by {listed} having count(*) > 1"

    def fits(self, schema: StructType) -> bool:
        """Returns whether the key means the same for a row of these columns that is about to be written."""
        return self.counted.fits(schema) and {each.lower() for each in self.columns} <= set(
            map(str.lower, schema.names)
        )


def key_test(audit: Audit, table: Name, time_zone: str) -> KeyTest | None:
    """Returns the test if the audit returns the keys that occur twice, by its form alone:
    `select ... from table where condition group by columns having count(*) > 1`, without another clause.

    Args:
        table, time_zone: as in `row_test`.
    """
    if "".join(audit.fail_calc.lower().split()) != _COUNT or audit.limit is not None:
        return None
    try:
        text = scanned(audit.query)
    except (StatementSyntaxError, UnsupportedStatementError):
        return None
    tokens, blocks = text.tokens, text.scan.blocks
    if len(blocks) != 1 or len(text.scan.references) != 1 or blocks[0].after != len(tokens) - 1:
        return None
    spans = {part.keyword: (part, tokens[part.first : after]) for part, after in blocks[0].spans}
    if len(spans) != len(blocks[0].spans) or spans.keys() - {"WHERE"} != {"SELECT", "FROM", "GROUP", "HAVING"}:
        return None
    by, columns, having = spans["GROUP"][1][:1], spans["GROUP"][1][1:], spans["HAVING"][1]
    names = tuple(each.identifier for each in columns[::2] if each.is_identifier)
    is_list = len(columns) == 2 * len(names) - 1 and all(each.word == "," for each in columns[1::2])
    if (
        [each.word for each in by] != ["BY"]
        or columns[0].word == "ALL"
        or not is_list
        or "".join(each.text for each in having).lower() != _TWICE
    ):
        return None
    if any(each.word in ("DISTINCT", *_OTHER_QUERIES) or _is_hint(each) for each in spans["SELECT"][1]):
        return None
    begin, end = tokens[spans["FROM"][0].at].start, tokens[spans["GROUP"][0].at].start
    counted = row_test(replace(audit, query=f"select * {audit.query[begin:end]}"), table, time_zone)
    if counted is None or not counted.is_repeatable:
        return None
    return KeyTest(facts_hash([audit.fingerprint, time_zone]), audit.name, names, counted)


def _proved(audit: Audit, table: Name, time_zone: str) -> RowTest | None:
    text = scanned(audit.query)
    tokens, found = text.tokens, text.scan
    if len(found.blocks) != 1 or len(found.references) != 1 or tokens[0].word != "SELECT":
        return None
    (block,), (reference,) = found.blocks, found.references
    select = read_select(tokens, block)
    if select is None or block.after != len(tokens) - 1 or not _reads_only(select, reference, table):
        return None
    listed, where = tokens[1 : select.list_after], select.where or ()
    if not all(map(_is_plain, listed)) or any(each.word in _OTHER_QUERIES or _is_hint(each) for each in where):
        return None
    qualifiers = _qualifiers(reference, table)
    names = [*column_names((*listed, tokens[-1])), *column_names(tuple(where) or tokens[-1:])]
    columns = [_column(each, qualifiers) for each in names]
    if None in columns:
        return None
    condition = _unqualified(audit.query, where, qualifiers)
    doubts = unrepeatable(condition)
    if not all(each.lower().removesuffix("()") in _VOLATILE for each in doubts.parts):
        return None  # it depends on the file of the row, or calls a function of the warehouse
    is_repeatable = not doubts.parts and not doubts.depends_on_day
    first = frozenset(each[0] for each in qualifiers)
    known = frozenset(each for each in columns if each)
    key = facts_hash([audit.fingerprint, time_zone])
    return RowTest(key, audit.name, reference.parts, condition, known, first, is_repeatable)


def _reads_only(select: Select, reference: Reference, table: Name) -> bool:
    """Returns whether a SELECT reads the newest rows of the table, and filters them at most."""
    if len(select.items) != 1 or not select.items[0].is_plain or not select.clauses <= _ONLY:
        return False
    is_other = reference.bounds or reference.options or reference.files or reference.reads_changes
    parts = tuple(each.lower() for each in reference.parts)
    return not is_other and reference.query_at is None and tuple(map(str.lower, table))[-len(parts) :] == parts


def _is_plain(token: Token) -> bool:
    return token.word in _IN_LIST or (token.kind is Kind.WORD and token.word != "DISTINCT")


def _is_hint(token: Token) -> bool:
    return token.kind is Kind.HINT


def _qualifiers(reference: Reference, table: Name) -> tuple[Name, ...]:
    """Returns the names that may qualify the table's columns, in lower case, the longest first."""
    if reference.alias is not None:
        return ((reference.alias.lower(),),)
    lower = tuple(each.lower() for each in table)
    return tuple(lower[at:] for at in range(len(lower)))


def _column(name: ColumnName, qualifiers: Collection[Name]) -> str | None:
    """Returns the column that a name refers to, in lower case; empty for a star, None if it is unknown."""
    rest = _rest(name, qualifiers)
    if name.has_star:
        return None if rest else ""
    return rest[0].lower() if rest else None


def _rest(name: ColumnName, qualifiers: Collection[Name]) -> Name:
    """Returns the parts of a name without the table's."""
    lower = tuple(each.lower() for each in name.parts)
    for each in qualifiers:
        if lower[: len(each)] == each and (len(lower) > len(each) or name.has_star):
            return name.parts[len(each) :]
    return name.parts


def _unqualified(query: str, where: Tokens, qualifiers: Collection[Name]) -> str:
    """Returns the condition with its columns named without the table; `true` without a condition."""
    if len(where) < 2:
        return "true"
    edits = list(_edits(where, qualifiers))
    start, end = where[0].start, where[-2].end
    moved = [Edit(each.start - start, each.end - start, each.new) for each in edits]
    return edited(query[start:end], moved)


def _edits(where: Tokens, qualifiers: Collection[Name]) -> Iterator[Edit]:
    for name in column_names(where):
        rest = _rest(name, qualifiers)
        if rest != name.parts:
            yield Edit(name.start, name.end, ".".join(map(quote, rest)))

"""Gives relations that dbt has cut the names and clauses that the user's SQL expects of a table.

`--empty`, `--sample` and the batches of microbatch replace a `ref` or a `source` by a subquery, and unit tests replace
it by a common table expression. The SQL around the subquery was written for a table: it may qualify columns by its
name, have time travel, or lack an alias. The statement itself shows all of this, so it is rewritten before it runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dbt_common.events.contextvars import get_node_info

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.query.parts import is_alias
from dbt.adapters.silt.engine.sql.spans import (
    Edit,
    Tokens,
    after_group,
    after_name,
    after_sample,
    after_time_travel,
    closings,
    edited,
)
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.runs.cut_relation_marks import CTE_PREFIX, MARK, WITHOUT_ROWS

_WRITTEN_TO = frozenset("INTO OVERWRITE UPDATE OPTIMIZE VACUUM DESCRIBE DESC DETAIL HISTORY".split())
_BEFORE_A_NAME = frozenset("FROM JOIN INTO UPDATE TABLE USING".split())
_BEFORE_A_TABLE = frozenset("ALTER ANALYZE CREATE DESCRIBE DESC DROP INSERT TRUNCATE".split())


def current_text(text: str) -> str:
    """Returns `for_tables` of the SQL for the node that dbt runs on this thread."""
    return for_tables(text, get_node_info().get("resource_type") == "unit_test")


def for_tables(text: str, is_unit_test: bool = False) -> str:
    """Rewrites each relation that dbt has cut to the form that the SQL around it needs.

    Args:
        text: a statement, or several.
        is_unit_test: whether the rows of common table expressions replace tables, in any version.
    """
    if not any(each in text for each in (MARK, CTE_PREFIX, WITHOUT_ROWS)):
        return text
    try:
        tokens = tokenize(text)
    except StatementSyntaxError:  # reported when the statement runs
        return text
    found = [*_subqueries(text, tokens), *_expressions(text, tokens)]
    edits = [edit for each in found for edit in each.edits(_alias(each, found), is_unit_test)]
    return edited(text, [*edits, *_requalified(tokens, found)])


@dataclass(frozen=True)
class _Cut:
    """A relation that dbt has cut: the tokens from `first` up to, not including, `after`.

    Attributes:
        name: the tokens of the table's name within it.
        group: the token of the enclosing parenthesis; -1 without a parenthesis.
        model: for the name of a common table expression, the name that it replaces; empty for a subquery.
    """

    text: str
    tokens: Tokens
    first: int
    after: int
    name: tuple[int, int]
    group: int = -1
    model: str = ""

    @property
    def is_subquery(self) -> bool:
        return not self.model

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name by which the user's SQL may qualify columns."""
        if self.model:
            return (self.model,)
        parts = [token.identifier for token in self.tokens[self.name[0] : self.name[1] : 2]]
        return (*parts[:-1], parts[-1].removeprefix(CTE_PREFIX))

    @cached_property
    def folded(self) -> tuple[str, ...]:
        return tuple(part.lower() for part in self.parts)

    @cached_property
    def clause_after(self) -> int:
        """The index after the clauses that may follow a table's name: time travel and options."""
        tokens, at = self.tokens, self.after
        travelled = after_time_travel(tokens, at)
        if travelled is not None:
            at = travelled[2]
        elif tokens[at].word == "@":
            at += 2
        return after_group(tokens, at + 1) if tokens[at].word == "WITH" and tokens[at + 1].word == "(" else at

    @cached_property
    def has_alias(self) -> bool:
        at = after_sample(self.tokens, self.clause_after)
        return is_alias(self.tokens, at) or (self.tokens[at].word == "AS" and self.tokens[at + 1].is_identifier)

    @property
    def before(self) -> str:
        return self.tokens[self.first - 1].word if self.first else ""

    @property
    def is_argument(self) -> bool:
        """Whether it is the table argument of a function, which has no alias."""
        around = [token.word for token in self.tokens[max(0, self.first - 2) : self.first]]
        return "TABLE" in around

    @property
    def is_target(self) -> bool:
        """Whether the statement changes or describes the table itself."""
        if self.before == "TABLE":
            return self.tokens[0].word in _BEFORE_A_TABLE
        is_deleted_from = self.before == "FROM" and self.first > 1 and self.tokens[self.first - 2].word == "DELETE"
        return is_deleted_from or self.before in _WRITTEN_TO

    def edits(self, alias: str, is_unit_test: bool) -> Iterator[Edit]:
        tokens = self.tokens
        end, clause_end = tokens[self.after - 1].end, tokens[self.clause_after - 1].end
        clause, written = self.text[end:clause_end].removeprefix(MARK), self._written
        mark_end = end + len(MARK) * self.text.startswith(MARK, end)
        if self.is_subquery and self.is_target:
            yield Edit(tokens[self.first].start, mark_end, written)
            return
        if self.is_subquery:
            yield Edit(end, max(clause_end, mark_end), "")
            if clause:
                behind = tokens[self.name[1] - 1].end
                yield Edit(behind, behind, clause)
        elif is_unit_test and clause:
            yield Edit(end, clause_end, "")
        if not self.has_alias and not self.is_argument:
            sampled = tokens[after_sample(tokens, self.clause_after) - 1].end
            at = max(sampled, mark_end)
            yield Edit(at, at, f" as {quote(alias)}")

    @property
    def _written(self) -> str:
        return self.text[self.tokens[self.name[0]].start : self.tokens[self.name[1] - 1].end]


def _subqueries(text: str, tokens: Tokens) -> Iterator[_Cut]:
    """Yields the subqueries that end like dbt's."""
    closed_by = closings(tokens)
    opened_by = {close: opening for opening, close in closed_by.items()}
    for at, token in enumerate(tokens):
        if token.word != ")" or at not in opened_by:
            continue
        if not text.startswith(MARK, token.end) and not text.endswith(WITHOUT_ROWS, 0, token.end):
            continue
        first = name = opened_by[at]
        while tokens[name].word in ("(", "SELECT", "*", "FROM"):
            name += 1
        if tokens[name].is_identifier:
            group = max((each for each, close in closed_by.items() if each < first and close > at), default=-1)
            yield _Cut(text, tokens, first, at + 1, (name, after_name(tokens, name)), group)


def _expressions(text: str, tokens: Tokens) -> Iterator[_Cut]:
    """Yields the uses of dbt's common table expressions in SQL that qualifies columns by the model's name."""
    qualifiers = {token.identifier for token, after in itertools.pairwise(tokens) if after.word == "."}
    for at, token in enumerate(tokens[:-1]):
        if not token.text.startswith(CTE_PREFIX) or token.text in qualifiers or tokens[at + 1].word in (".", "("):
            continue
        if tokens[at + 1].word == "AS" and tokens[at + 2].word == "(":  # the expression's definition
            continue
        model = _model(token.text.removeprefix(CTE_PREFIX), qualifiers)
        cut = _Cut(text, tokens, at, at + 1, (at, at + 1), model=model)
        if model in qualifiers or cut.clause_after > cut.after:
            yield cut


def _model(name: str, qualifiers: Collection[str]) -> str:
    """Returns the qualifier of the columns: the model's name, or the source's name without its first part."""
    tables = [each for each in qualifiers if name.lower() == each.lower() or name.lower().endswith(f"__{each.lower()}")]
    return max(tables, key=len, default=name)


def _alias(cut: _Cut, found: Sequence[_Cut]) -> str:
    """Returns the table's name, or its full name if another relation of the same FROM has the same table name."""
    names = {
        each.folded
        for each in found
        if each.group == cut.group and each.folded[-1] == cut.folded[-1] and not each.has_alias
    }
    return cut.parts[-1] if len(names) < 2 else ".".join(cut.parts)


def _requalified(tokens: Tokens, found: Sequence[_Cut]) -> Iterator[Edit]:
    """Yields edits of columns with database or schema in their qualifier: an alias replaces the whole qualifier."""
    aliases = {
        each.folded[-length:]: _alias(each, found)
        for each in found
        if each.is_subquery and not each.has_alias
        for length in range(2, len(each.parts) + 1)
    }
    at = 0
    while aliases and at < len(tokens) - 1:
        if not tokens[at].is_identifier:
            at += 1
            continue
        after = after_name(tokens, at)
        parts = tuple(token.identifier.lower() for token in tokens[at:after:2])
        qualifiers = len(parts) if tokens[after].word == "." else len(parts) - 1
        is_table = at > 0 and tokens[at - 1].word in _BEFORE_A_NAME
        length = next((each for each in range(qualifiers, 1, -1) if parts[:each] in aliases), 0)
        if length and not is_table:
            yield Edit(tokens[at].start, tokens[at + 2 * (length - 1)].end, quote(aliases[parts[:length]]))
        at = after

"""Scans the tokens of a query or an expression once, for its tables, functions, names of columns and SELECTs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.query import table_functions
from dbt.adapters.silt.engine.sql.query.parts import AFTER_ROW, Part, is_alias, part_at
from dbt.adapters.silt.engine.sql.query.scans import Block, Call, Chain, Reference, Scan, Scope
from dbt.adapters.silt.engine.sql.spans import (
    Tokens,
    after_group,
    after_name,
    after_sample,
    has_rows,
    starts_query,
    starts_query_in_parentheses,
    travelled,
)
from dbt.adapters.silt.engine.sql.tokens import Kind, double_quotes_remedy, syntax_error


def scan(text: str, tokens: Tokens) -> Scan:
    """Scans a query or an expression with these tokens.

    Raises:
        StatementSyntaxError: if the text quotes a name as a string.
        UnsupportedStatementError: if IDENTIFIER(...) is used for a table's name, or parentheses are nested too deep.
    """
    scanner = _Scanner(text, tokens)
    try:
        scanner.run()
    except RecursionError as error:
        raise UnsupportedStatementError("its parentheses are nested too deep", remedy="Split the statement") from error
    return Scan(
        tuple(scanner.scopes), tuple(scanner.chains), tuple(scanner.calls), scanner.scopes, tuple(scanner.blocks)
    )


class _State(Enum):
    """The interpretation of the next token of a query."""

    START = "the beginning of a SELECT, VALUES, TABLE or FROM"
    EXPRESSION = "part of an expression"
    RELATION = "a relation"
    FROM_LIST = "part of a FROM list, after a relation"


_NO_CTES: frozenset[str] = frozenset()
_SET_OPERATIONS = frozenset(("UNION", "INTERSECT", "EXCEPT", "MINUS"))


@dataclass
class _Body:
    """The parts read so far of a SELECT that begins at the token `first`, or of relations in parentheses."""

    first: int | None
    scope: Scope
    state: _State = _State.START
    parts: list[Part] = field(default_factory=list)

    def opened(self, part: Part | None) -> int | None:
        """Adds the part, and returns the index after its keywords, if it is a part of this body."""
        if part is None or (part.keyword == "," and self.state is not _State.FROM_LIST):
            return None
        if part.is_condition and not (self.parts and self.parts[-1].has_relation):
            return None
        self.parts.append(part)
        if part.has_relation:
            self.state = _State.RELATION
        elif part.is_clause:
            self.state = _State.EXPRESSION
        return part.first


class _Scanner:
    """Scanner whose methods take the index of a token and return the index after the scanned tokens."""

    def __init__(self, text: str, tokens: Tokens) -> None:
        self.text = text
        self.tokens = tokens
        self.scopes: dict[Reference, Scope] = {}
        self.chains: list[Chain] = []
        self.calls: list[Call] = []
        self.blocks: list[Block] = []

    def run(self) -> None:
        at = 0
        end = len(self.tokens) - 1
        is_query = starts_query_in_parentheses(self.tokens, 0)
        while at < end:
            at = self._query(at, _NO_CTES, None) if is_query else self._expression(at, _NO_CTES, None, False)
            at += 1  # Spark reports a parenthesis that was never opened

    # Queries

    def _query(self, at: int, ctes: frozenset[str], outer: Scope | None) -> int:
        """Scans a query up to its closing parenthesis, or the end."""
        if self.tokens[at].word == "WITH":
            at, ctes = self._ctes(at, ctes, outer)
        return self._body(at, ctes, _Body(at, Scope(outer)))

    def _ctes(self, at: int, ctes: frozenset[str], outer: Scope | None) -> tuple[int, frozenset[str]]:
        """Scans WITH: each name is known to the expressions after it and to the query, a recursive name to itself."""
        tokens = self.tokens
        at += 1
        recursive = tokens[at].word == "RECURSIVE" and tokens[at + 1].is_identifier and tokens[at + 1].word != "AS"
        at += recursive
        while tokens[at].is_identifier:
            name = tokens[at].identifier.lower()
            at += 1
            if tokens[at].word == "(" and not starts_query_in_parentheses(tokens, at):
                at = after_group(tokens, at)
            while tokens[at].word != "(" and tokens[at].kind is not Kind.END:
                at += 1
            if tokens[at].word == "(":
                at = self._closed(self._query(at + 1, ctes | {name} if recursive else ctes, outer))
            ctes |= {name}
            if tokens[at].word != ",":
                break
            at += 1
        return at, ctes

    def _body(self, at: int, ctes: frozenset[str], body: _Body) -> int:
        """Scans SELECTs and set operations, or relations, up to their closing parenthesis, or the end."""
        tokens = self.tokens
        while tokens[at].word != ")" and tokens[at].kind is not Kind.END:
            word = tokens[at].word
            if body.state is _State.RELATION:
                at, body.state = self._relation(at, ctes, body.scope), _State.FROM_LIST
            elif word == "(":
                scope = body.scope.parent if body.state is _State.START else body.scope
                at = self._group(at, ctes, scope, False)
            elif word in _SET_OPERATIONS and self._is_set_operation(at):
                self._end(at, body)
                at += 1
                body = _Body(at, Scope(body.scope.parent))
            elif word == "TABLE" and body.state is _State.START:
                at, body.state = self._table(at + 1, ctes, body.scope, None, tokens[at].start), _State.EXPRESSION
            else:
                at = self._step(at, body)
        self._end(at, body)
        return at

    def _end(self, at: int, body: _Body) -> None:
        """Records a SELECT that ends before the token `at`."""
        if body.first is not None:
            self.blocks.append(Block(body.first, at, body.scope, tuple(body.parts)))

    def _step(self, at: int, body: _Body) -> int:
        """Scans a name, keyword or symbol."""
        token, following = self.tokens[at], self.tokens[at + 1]
        if token.is_identifier and following.word == ".":
            return self._chain(at, body.scope)
        if token.word == "AS" and following.is_identifier:
            return at + 2
        if token.word == "VALUES" and body.state is _State.START:
            body.state = _State.EXPRESSION
        if self._is_call(at):
            self._called(at, at + 1)
        return body.opened(part_at(self.tokens, at)) or at + 1

    def _is_set_operation(self, at: int) -> bool:
        """Returns whether a query follows; `* EXCEPT (a, b)` leaves columns out instead."""
        at += 1
        if self.tokens[at].word in ("ALL", "DISTINCT", "SELECT", "FROM", "MAP", "REDUCE"):
            return True
        return starts_query_in_parentheses(self.tokens, at)

    # Relations

    def _relation(self, at: int, ctes: frozenset[str], scope: Scope) -> int:
        """Scans a table, a query or relations in parentheses, VALUES or a function, with sample and alias."""
        tokens = self.tokens
        while tokens[at].word == "LATERAL":
            at += 1
        if tokens[at].word == "(":
            if starts_query(tokens, at + 1):
                at = self._closed(self._query(at + 1, ctes, scope))
            else:
                at = self._closed(self._body(at + 1, ctes, _Body(None, scope, _State.RELATION)))
            return self._alias(after_sample(tokens, at), scope)[0]
        if tokens[at].word == "VALUES" and has_rows(tokens, at + 1):
            return self._inline_table(at + 1, ctes, scope)
        if tokens[at].kind is Kind.DOUBLE_QUOTED:
            said = tokens[at].text
            problem = f"expected the name of a table, found the string {said}"
            raise syntax_error(problem, self.text, tokens[at].start, double_quotes_remedy(said))
        if not tokens[at].is_identifier:
            return at if tokens[at].word == ")" or tokens[at].kind is Kind.END else at + 1
        return self._table(at, ctes, scope, scope)

    def _table(
        self, at: int, ctes: frozenset[str], scope: Scope, alias_scope: Scope | None, query_at: int | None = None
    ) -> int:
        """Scans a table's name or a function's call; `alias_scope` is None if no alias is possible."""
        tokens = self.tokens
        if tokens[at].word == "IDENTIFIER" and tokens[at + 1].word == "(":
            raise UnsupportedStatementError(
                "IDENTIFIER(...) hides the name of a table from this engine", remedy="Write the name itself"
            )
        if not tokens[at].is_identifier:
            return at
        first, at = at, after_name(tokens, at)
        if tokens[at].word == "(" and at == first + 1 and tokens[first].identifier.lower() in table_functions.NAMES:
            return self._call(first, scope)
        if tokens[at].word == "(" and alias_scope is not None:
            behind = self._group(at, ctes, scope, True)
            end, alias = self._alias(behind, scope)
            self._called(first, at, tokens[behind - 1].end if alias is None else None)
            return end
        parts = tuple(token.identifier for token in tokens[first:at:2])
        if len(parts) == 1 and parts[0].lower() in ctes:
            if alias_scope is None:
                return at
            at, alias = self._alias(after_sample(tokens, at), scope)
            scope.names.add((alias or parts[0]).lower())
            return at
        return self._reference(first, at, parts, scope, alias_scope is not None, query_at)

    def _call(self, first: int, scope: Scope) -> int:
        """Scans a call of a table function that this engine itself answers."""
        cursor = Cursor(self.text, self.tokens)
        cursor.at_token = first + 1
        arguments = cursor.group_cursor()
        at, start, end = cursor.at_token, self.tokens[first].start, self.tokens[cursor.at_token - 1].end
        call = table_functions.call(self.tokens[first].identifier, arguments, self.text[start:end])
        at, alias = self._alias(at, scope)
        reference = Reference(
            call.name, start, end, alias, end, changes=call.changes, difference=call.difference, files=call.files
        )
        self.scopes[reference] = scope
        scope.references.append(reference)
        scope.names.add((alias or call.name[-1]).lower())
        return at

    def _reference(
        self, first: int, at: int, parts: Name, scope: Scope, may_have_alias: bool, query_at: int | None
    ) -> int:
        """Records the reference whose name has been read."""
        tokens = self.tokens
        parts, version, timestamp, at = travelled(self.text, tokens, parts, at)
        options = None
        if tokens[at].word == "WITH" and tokens[at + 1].word == "(":
            behind = after_group(tokens, at + 1)
            options = self.text[tokens[at + 1].start : tokens[behind - 1].end]
            at = behind
        end = tokens[at - 1].end
        alias, alias_at = None, None
        if may_have_alias:
            at = after_sample(tokens, at)
            alias_at = tokens[at - 1].end
            at, alias = self._alias(at, scope)
        reference = Reference(
            parts, tokens[first].start, end, alias, alias_at, version, timestamp, options, query_at=query_at
        )
        self.scopes[reference] = scope
        scope.references.append(reference)
        scope.names.add((alias or parts[-1]).lower())
        return at

    def _inline_table(self, at: int, ctes: frozenset[str], scope: Scope) -> int:
        """Scans the rows of VALUES, whose commas are not part of the FROM list, and an alias."""
        tokens = self.tokens
        while True:
            while tokens[at].kind is not Kind.END and tokens[at].word not in AFTER_ROW:
                if tokens[at].word == "(":
                    at = self._group(at, ctes, scope, False)
                    if tokens[at].is_identifier:
                        break
                else:
                    at += 1
            if tokens[at].word != ",":
                return self._alias(at, scope)[0]
            at += 1

    def _alias(self, at: int, scope: Scope) -> tuple[int, str | None]:
        """Scans [AS] alias [(columns)]."""
        tokens = self.tokens
        token = tokens[at]
        if token.word == "AS" and tokens[at + 1].is_identifier:
            at += 1
            token = tokens[at]
        elif not is_alias(tokens, at):
            return at, None
        scope.names.add(token.identifier.lower())
        at += 1
        return (after_group(tokens, at) if tokens[at].word == "(" else at), token.identifier

    # Expressions

    def _group(self, at: int, ctes: frozenset[str], scope: Scope | None, table_arguments: bool) -> int:
        """Scans a query or an expression in parentheses, which open here."""
        is_table_argument = table_arguments and self.tokens[at + 1].word == "TABLE"
        is_trim = self.tokens[max(0, at - 1)].word == "TRIM"  # trim(from x)
        if starts_query(self.tokens, at + 1) and not is_table_argument and not is_trim:
            return self._closed(self._query(at + 1, ctes, scope))
        return self._closed(self._expression(at + 1, ctes, scope, table_arguments))

    def _expression(self, at: int, ctes: frozenset[str], scope: Scope | None, table_arguments: bool) -> int:
        tokens = self.tokens
        while True:
            token = tokens[at]
            if token.word == ")" or token.kind is Kind.END:
                return at
            if token.word == "(":
                at = self._group(at, ctes, scope, False)
            elif table_arguments and token.word == "TABLE" and tokens[at - 1].word in ("(", ",", "=>"):
                at = self._table_argument(at + 1, ctes, scope)
            elif token.is_identifier and tokens[at + 1].word == ".":
                at = self._chain(at, scope)
            else:
                if self._is_call(at) and tokens[at - 1].word not in _BEFORE_A_TYPE:
                    self._called(at, at + 1)
                at += 1

    def _table_argument(self, at: int, ctes: frozenset[str], scope: Scope | None) -> int:
        """Scans the argument after TABLE in the call of a table-valued function: name, (name) or (query)."""
        own = Scope(scope)
        if self.tokens[at].word != "(":
            return self._table(at, ctes, own, None)
        if starts_query_in_parentheses(self.tokens, at):
            return self._closed(self._query(at + 1, ctes, scope))
        return self._closed(self._table(at + 1, ctes, own, None))

    def _is_call(self, at: int) -> bool:
        """Returns whether a function with a single-part name is called here."""
        token = self.tokens[at]
        return token.is_identifier and self.tokens[at + 1].word == "(" and token.word not in _NO_FUNCTION

    def _called(self, first: int, at: int, alias_at: int | None = None) -> None:
        """Records the call of the function whose name has been read."""
        parts = tuple(token.identifier for token in self.tokens[first:at:2])
        self.calls.append(Call(parts, self.tokens[first].start, self.tokens[at - 1].end, alias_at))

    def _chain(self, at: int, scope: Scope | None) -> int:
        """Scans a dotted name, of a column or of a called function."""
        tokens = self.tokens
        first, at = at, after_name(tokens, at)
        has_star = tokens[at].word == "." and tokens[at + 1].word == "*"
        if tokens[at].word != "(":
            found = tokens[first:at:2]
            parts = tuple(token.identifier.lower() for token in found)
            self.chains.append(Chain(parts, tuple((t.start, t.end) for t in found), scope, has_star))
        else:
            self._called(first, at)
        return at + 2 if has_star else at

    def _closed(self, at: int) -> int:
        """Returns the index after a group's closing parenthesis, at most the index of the END token."""
        return min(at + 1, len(self.tokens) - 1)


_BEFORE_A_TYPE = frozenset(("AS", "::"))
# Words that a parenthesis may follow without making them function names.
_NO_FUNCTION = frozenset(
    "ALL AND ANY AS BETWEEN BY CASE ELSE EXCEPT EXISTS FILTER FROM GROUP HAVING IN INTERSECT IS JOIN LIKE NOT ON OR "
    "ORDER OVER SELECT SETS SOME THEN UNION USING VALUES WHEN WHERE WITH".split()
)

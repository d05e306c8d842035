"""ScannedText: a query or expression with its tokens and scan, read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from dbt.adapters.silt.engine.sql.query.scanner import scan
from dbt.adapters.silt.engine.sql.query.scans import Scan
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import tokenize


@dataclass(frozen=True)
class ScannedText:
    """The text of a query or an expression; it is read when it is first asked for.

    Raises, from `tokens` and `scan`:
        StatementSyntaxError: the text cannot be split into tokens, or quotes a name as a string.
        UnsupportedStatementError: IDENTIFIER(...) hides a table's name, or parentheses are nested too deep.
    """

    sql: str

    @cached_property
    def tokens(self) -> Tokens:
        return tokenize(self.sql)

    @cached_property
    def scan(self) -> Scan:
        return scan(self.sql, self.tokens)


@lru_cache(maxsize=256)
def scanned(sql: str) -> ScannedText:
    """The text, scanned once however often it comes: views are expanded again by every statement that reads them."""
    return ScannedText(sql)

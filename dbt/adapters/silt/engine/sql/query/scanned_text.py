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


@lru_cache(maxsize=256)
def scanned(sql: str) -> ScannedText:
    """Returns the cached scan of the text: every statement that reads a view expands it again."""
    return ScannedText(sql)

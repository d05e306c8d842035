"""Finds the parts of SQL whose values may differ from one execution to the next, although the tables are the same.

A function that depends on the order of rows (`first`, `collect_list`) has several correct values, and any of them is a
correct result: it is not such a part.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.query.rule_texts import (
    DETERMINISTIC,
    OF_CHANCE,
    REFUSED,
    RUNS_CODE,
    WITH_OPTIONS_THAT_OPEN_FILES,
)
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

OF_THE_DAY = frozenset("curdate current_date".split())
"""They have the same value on the same day."""

OF_THE_TIME = frozenset("current_time current_timestamp localtime localtimestamp now".split())

OF_THE_SESSION = frozenset(
    """
    collations current_catalog current_database current_path current_schema current_timezone current_user
    python_worker_logs session_user sql_keywords user version
    """.split()
)

OF_THE_FILE = frozenset(
    """
    input_file_block_length input_file_block_start input_file_name monotonically_increasing_id spark_partition_id
    """.split()
)
"""They depend on the files that contain a row."""

UNREPEATABLE = OF_CHANCE | OF_THE_TIME | OF_THE_SESSION | OF_THE_FILE | RUNS_CODE | WITH_OPTIONS_THAT_OPEN_FILES.keys()

REPEATABLE = (DETERMINISTIC | REFUSED) - UNREPEATABLE - OF_THE_DAY
"""Spark's functions that return the same values for the same rows in every execution."""

_TIME_WITHOUT_ARGUMENTS = "unix_timestamp"
_WITHOUT_PARENTHESES = frozenset(
    "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP SESSION_USER USER".split()
)
_TYPED = frozenset("DATE TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ".split())
_SPECIAL = ("now", "today", "tomorrow", "yesterday")
_BEFORE_PARENTHESES = frozenset(
    """
    ALL ANALYZE AND ANTI ANY AS BETWEEN BOTH BY CASE CONFLICT CROSS CUBE DISTINCT DIV ELSE ESCAPE EXCEPT EXISTS
    EXTRACT FILTER FOR FROM FULL GROUP GROUPING HAVING ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL
    LEADING LEFT LIKE LIMIT MATCHED MINUS NATURAL NOT NULLS OFFSET ON OR ORDER OUTER OVER OVERWRITE PARTITION
    PARTITIONED PIVOT PLACING QUALIFY REGEXP RIGHT RLIKE ROLLUP SELECT SEMI SET SETS SOME STRUCT TABLE TBLPROPERTIES
    THEN TRAILING UNION UNPIVOT USING VALUES VIEW WHEN WHERE WITH WITHIN
    """.split()
)
_BEGIN_OF_QUERY = (["("], ["FROM"], ["SELECT"], ["TABLE"], ["VALUES"], ["WITH"])
_TYPES = frozenset("ARRAY CHARACTER DEC MAP NUMERIC VARCHAR TIMESTAMP_LTZ TIMESTAMP_NTZ".split())


@dataclass(frozen=True)
class Unrepeatable:
    """The parts of a text whose values may differ.

    Attributes:
        parts: the parts, for messages.
        depends_on_day: whether its values also depend on the date.
    """

    parts: tuple[str, ...] = ()
    depends_on_day: bool = False


@lru_cache(maxsize=1024)
def unrepeatable(text: str, own_calls: frozenset[int] = frozenset()) -> Unrepeatable:
    """Returns the parts of a text whose values may differ.

    Args:
        own_calls: positions of the calls of functions of the warehouse, whose bodies are texts of their own, and of the
            relations that the warehouse resolves.
    """
    try:
        tokens = tokenize(text)
    except StatementSyntaxError:
        return Unrepeatable(("SQL that cannot be read",))
    parts = tuple(_parts(tokens, _Names(tokens), own_calls))
    days = [each for each in parts if each in OF_THE_DAY]
    return Unrepeatable(tuple(dict.fromkeys(each for each in parts if each not in OF_THE_DAY)), bool(days))


class _Names:
    """The names that a text gives to relations (`with a (x) as ...`, `from f() as t (x)`), which look like calls."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def is_column_list(self, at: int) -> bool:
        """Returns whether the parenthesis after the name at `at` contains columns: of a CTE, an alias or a table."""
        before = self._tokens[at - 1].word if at else ""
        return before in (")", "AS", "WITH", "RECURSIVE", "TABLE", "INTO", "VIEW") or (
            before == "," and self._ends_in_as(at + 1)
        )

    def _ends_in_as(self, at: int) -> bool:
        depth = 0
        for index in range(at, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[index].word, 0)
            if depth == 0:
                following = [each.word for each in self._tokens[index + 1 : index + 4]]
                return following[:2] == ["AS", "("] and following[2:] in _BEGIN_OF_QUERY
        return False


def _parts(tokens: Tokens, names: _Names, own_calls: Container[int]) -> Iterator[str]:
    for at, token in enumerate(tokens[:-1]):
        following, before = tokens[at + 1], tokens[at - 1].word if at else ""
        if token.word == "TABLESAMPLE":
            yield "TABLESAMPLE"
        elif token.is_identifier and following.word == "(":
            yield from _call(tokens, at, names, own_calls)
        elif token.kind is Kind.DOUBLE_QUOTED and following.word == "(":
            yield f"{token.text}()"
        elif token.word in _WITHOUT_PARENTHESES and before not in (".", "AS") and following.word != ".":
            yield token.text.lower()
        elif token.word in _TYPED and _is_special(following):
            yield f"{token.text} {following.text}"
        elif token.word == "USING" and following.kind in (Kind.STRING, Kind.DOUBLE_QUOTED):
            yield "a script"
        elif token.is_identifier and token.identifier.lower() == "_metadata":
            yield "_metadata"


def _call(tokens: Tokens, at: int, names: _Names, own_calls: Container[int]) -> Iterator[str]:
    token, name = tokens[at], tokens[at].identifier.lower()
    if tokens[at - 1].word == "." and at:
        if tokens[at - 2].identifier.lower() not in ("builtin", "system") and not _starts_in(tokens, at, own_calls):
            yield f"{name}()"
        elif name not in REPEATABLE and not _starts_in(tokens, at, own_calls):
            yield name if name in OF_THE_DAY else f"{name}()"
        return
    if token.start in own_calls or token.word in _BEFORE_PARENTHESES or token.word in _TYPES:
        return
    if name in OF_THE_DAY:
        yield name
    elif (name not in REPEATABLE and not names.is_column_list(at)) or (
        name == _TIME_WITHOUT_ARGUMENTS and tokens[at + 2].word == ")"
    ):
        yield f"{name}()"


def _starts_in(tokens: Tokens, at: int, own_calls: Container[int]) -> bool:
    """Returns whether the dotted name that ends at `at` is a call of a function of the warehouse."""
    while at >= 2 and tokens[at - 1].word == ".":
        at -= 2
    return tokens[at].start in own_calls


def _is_special(token: Token) -> bool:
    return token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED) and token.text[1:].strip().lower().startswith(_SPECIAL)

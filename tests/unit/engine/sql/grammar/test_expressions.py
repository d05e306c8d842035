"""The expressions of DELETE, UPDATE and MERGE: each is found once and changed in place."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.ast import Delete, Merge, Update
from dbt.adapters.silt.engine.sql.grammar.clauses import expressions, with_expressions
from dbt.adapters.silt.engine.sql.grammar.parse import parse

MERGE = """merge into t using (select 1) s on t.id = s.id
when matched and s.a > 1 then update set a = s.a, b = s.id
when matched then delete
when not matched then insert (id, a) values (s.id, s.a)
when not matched by source then update set a = s.id"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delete from t", ()),
        ("delete from t where a = 1", ("a = 1",)),
        ("update t set a = b, c = b where d", ("d", "b")),
        (MERGE, ("t.id = s.id", "s.a > 1", "s.a", "s.id")),
    ],
)
def test_each_expression_is_found_once(text: str, expected: tuple[str, ...]) -> None:
    statement = parse(text)
    assert isinstance(statement, Delete | Update | Merge)
    assert sorted(expressions(statement)) == sorted(expected)


@pytest.mark.parametrize("text", ["delete from t where a = 1", "update t set a = b, c = b where d", MERGE])
def test_changing_an_expression_changes_nothing_else(text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, Delete | Update | Merge)
    changed = with_expressions(statement, lambda each: f"<{each}>")
    assert set(expressions(changed)) == {f"<{each}>" for each in expressions(statement)}
    assert with_expressions(changed, lambda each: each[1:-1]) == statement

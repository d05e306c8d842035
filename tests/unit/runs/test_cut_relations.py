"""Statements in which dbt replaced a table by a subquery or a fixture."""

from __future__ import annotations

import re

import pytest

from dbt.adapters.silt.relation import SiltRelation
from dbt.adapters.silt.runs.cut_relation_marks import MARK
from dbt.adapters.silt.runs.cut_relations import for_tables

SRC = SiltRelation.create("silt", "main", "src", limit=0)
OTHER = SiltRelation.create("silt", "other", "src", limit=0)
ODD = SiltRelation.create("silt", "main", "o`d d", limit=5)
NO_ROWS = "where false limit 0)"
CUT = "(select * from silt.main.src where false limit 0)"


def plain(text: str) -> str:
    """Removes unnecessary backquotes of names."""
    return re.sub(r"`([\w.]+)`", r"\1", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"select src.id from {SRC}", f"select src.id from {CUT} as `src`"),
        (f"select s.id from {SRC} s", f"select s.id from {CUT} s"),
        (f"select s.id from {SRC} as s (id)", f"select s.id from {CUT} as s (id)"),
        (f"select src.* from {SRC} -- all\nwhere true", f"select src.* from {CUT} as `src` -- all\nwhere true"),
        (f"from {SRC} join b using (id)", f"from {CUT} as `src` join b using (id)"),
        (
            f"select silt.main.src.id, main.src.id, src.id from {SRC}",
            f"select `src`.id, `src`.id, src.id from {CUT} as `src`",
        ),
        (
            f"with c as (select src.id from {SRC}) select (select max(c.id) from c) from {SRC} s",
            f"with c as (select src.id from {CUT} as `src`) select (select max(c.id) from c) from {CUT} s",
        ),
        (
            f"select main.src.id, other.src.id from {SRC}, {OTHER}",
            f"select `silt.main.src`.id, `silt.other.src`.id from {CUT} as `silt.main.src`, "
            "(select * from silt.other.src where false limit 0) as `silt.other.src`",
        ),
        (f"select * from {ODD}", "select * from (select * from silt.main.`o``d d` limit 5) as `o``d d`"),
        (f"from {SRC} version as of 0", f"from (select * from silt.main.src version as of 0 {NO_ROWS} as `src`"),
        (
            f"from {SRC} for timestamp as of now() - interval 1 day s join b",
            f"from (select * from silt.main.src for timestamp as of now() - interval 1 day {NO_ROWS} s join b",
        ),
        (f"from {SRC}@v3", f"from (select * from silt.main.src@v3 {NO_ROWS} as `src`"),
        (f"from {SRC} tablesample (5 rows) where true", f"from {CUT} tablesample (5 rows) as `src` where true"),
        (f"merge into t using {SRC} on src.a = t.a", f"merge into t using {CUT} as `src` on src.a = t.a"),
        (f"merge into {SRC} t using b on true", "merge into silt.main.src t using b on true"),
        (f"insert into {SRC} values (1)", "insert into silt.main.src values (1)"),
        (f"delete from {SRC} where true", "delete from silt.main.src where true"),
        (f"alter table {SRC} add column a int", "alter table silt.main.src add column a int"),
        (f"select * from f(table({SRC}))", f"select * from f(table({CUT}))"),
        (f"select * from f(table {SRC}, 1)", f"select * from f(table {CUT}, 1)"),
        (f"select '{MARK}' from t", f"select '{MARK}' from t"),
        (f"select ' from {SRC}", f"select ' from {SRC}"),
    ],
)
def test_alias_version_and_sample_of_a_table_apply_to_its_subquery(text: str, expected: str) -> None:
    assert plain(for_tables(text)) == plain(expected)


def test_the_version_of_a_filtered_and_limited_table_is_applied_to_the_table() -> None:
    text = f"from (select * from (select * from a.src limit 5){MARK} where at > '1'){MARK} version as of 2"
    inner = "(select * from a.src version as of 2 limit 5) as `src`"
    assert for_tables(text) == f"from (select * from {inner} where at > '1') as `src`"


FIXTURES = "with __dbt__cte__src as (select 1 as id), __dbt__cte__raw__people as (select 2 as id) "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select src.id from __dbt__cte__src", "select src.id from __dbt__cte__src as `src`"),
        ("select people.id from __dbt__cte__raw__people", "select people.id from __dbt__cte__raw__people as `people`"),
        ("select s.id from __dbt__cte__src s", "select s.id from __dbt__cte__src s"),
        ("select id from __dbt__cte__src", "select id from __dbt__cte__src"),
        ("select __dbt__cte__src.id from __dbt__cte__src", "select __dbt__cte__src.id from __dbt__cte__src"),
        ("select s.id from __dbt__cte__src version as of 0 s", "select s.id from __dbt__cte__src s"),
    ],
)
def test_a_fixture_has_the_name_of_its_table_and_replaces_each_of_its_versions(text: str, expected: str) -> None:
    assert for_tables(FIXTURES + text, is_unit_test=True) == FIXTURES + expected


def test_a_version_of_an_ephemeral_model_is_not_removed() -> None:
    text = f"{FIXTURES}select s.id from __dbt__cte__src version as of 0 s"
    assert for_tables(text) == text

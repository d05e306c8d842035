"""Two writers that do the same work at the same time, identified by its transaction: it is done once, and neither
fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentCreateError,
    ConcurrentModificationError,
    RelationExistsError,
)
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.transaction import commit
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver
from tests.unit.engine.house import House, side_by_side

WORK = ("silt/shop/model.shop.t/run-1/main", 1)
OTHER_WORK = ("silt/shop/model.shop.t/run-2/main", 1)

ROWS = "create table t as select id, id % 3 as part from range(12)"
MERGE = (
    "merge into t using (select id, 7 as part from range(6, 18)) s on t.id <=> s.id "
    "when matched then update set * when not matched then insert *"
)


@dataclass(frozen=True)
class Kind:
    """A statement, with the statements that prepare it."""

    statement: str
    before: tuple[str, ...] = (ROWS,)


KINDS = {
    "first creation": Kind("create table t as select id, id as part from range(5)", ()),
    "creation if not exists": Kind("create table if not exists t as select id, id as part from range(5)", ()),
    "replacement where nothing is": Kind("create or replace table t as select id, id as part from range(5)", ()),
    "replacement": Kind("create or replace table t as select id, id as part from range(5)"),
    "replacement of a view": Kind(
        "create or replace table t as select id, id as part from range(5)",
        ("create view t as select 1 as id, 2 as part",),
    ),
    "creation like another": Kind("create table t like s", ("create table s (id bigint, part bigint)",)),
    "clone": Kind("create table t shallow clone s", (ROWS.replace("table t", "table s"),)),
    "clone again": Kind("create or replace table t shallow clone s", (ROWS, ROWS.replace("table t", "table s"))),
    "append": Kind("insert into t by name select id, 9L as part from range(4)"),
    "append that reads its table": Kind("insert into t select max(id) + 1, 0L from t"),
    "merge": Kind(MERGE),
    "merge that adds a column": Kind(
        "merge with schema evolution into t using (select id, 7L as part, 'x' as tag from range(6, 18)) s "
        "on t.id <=> s.id when matched then update set * when not matched then insert *"
    ),
    "replace on": Kind(
        "insert into t as o by name replace on o.part <=> n.part (select id + 100 as id, 1L as part from range(2)) as n"
    ),
    "replace where": Kind(
        "insert into t by name replace where part = 1 select id + 50 as id, 1L as part from range(2)"
    ),
    "overwrite": Kind("insert overwrite t by name select id, 1L as part from range(2)"),
    "delete": Kind("delete from t where part = 2"),
    "update": Kind("update t set part = part + 1"),
    "truncate": Kind("truncate table t"),
    "restore": Kind("restore table t to version as of 0", (ROWS, "delete from t where id < 3")),
    "new column": Kind("alter table t add columns (note string)"),
    "optimize": Kind("optimize t", (ROWS, "insert into t select * from t")),
}
LOOKED_FOR = ("first creation", "replacement", "append that reads its table", "merge", "delete", "restore")
"""Statements whose work is also done just after they look for it, in tests that are not marked long."""
CREATIONS = ("first creation", "creation like another", "clone")


def before_the_commit(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Runs the other completely when the next statement is about to commit."""
    _before(monkeypatch, commit, "commit", other)


def after_the_look(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Runs it when the statement has looked for its work, but not yet pinned the tables that it reads."""
    _before(monkeypatch, Resolver, "resolve", other)


def before_the_folder(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Runs it when the statement has found that the table is missing, but not yet started to create it."""
    _before(monkeypatch, Catalog, "new_table", other)


def _before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Callable[[], object]) -> None:
    original, waiting = getattr(owner, name), [other]

    def run(*arguments: Any, **named: Any) -> Any:
        if waiting:
            waiting.pop()()
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, run)


MOMENTS = {"commit": before_the_commit, "look": after_the_look}


def times_done(house: House, txn: tuple[str, int] = WORK) -> int:
    """Returns how many commits of the table `t` have recorded the work."""
    log = house.another().warehouse.catalog.table(RelationName("silt", "main", "t"))
    return sum(isinstance(a, SetTransaction) and a.app_id == txn[0] for each in log.commits() for a in each.actions)


def run(house: House, kind: Kind, txn: tuple[str, int] = WORK) -> Outcome:
    outcome = house.warehouse.execute(kind.statement, txn).outcome
    assert outcome is not None
    return outcome


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        pytest.param(name, moment, marks=[] if moment == "commit" or name in LOOKED_FOR else pytest.mark.long)
        for name in KINDS
        for moment in MOMENTS
        if (name, moment) != ("optimize", "look")
    ],
)
def test_the_second_writer_skips_the_work_and_names_the_version_that_did_it(
    name: str, moment: str, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, done = KINDS[name], []
    for statement in kind.before:
        house.sql(statement)
    winner = house.another()

    def other() -> None:
        done.append(run(winner, kind))
        done.append(winner.rows("select * from t"))  # type: ignore[arg-type]

    MOMENTS[moment](monkeypatch, other)
    outcome = run(house, kind)
    assert (outcome.skipped, outcome.version) == (True, done[0].version)
    assert not done[0].skipped
    assert times_done(house) == 1
    assert house.rows("select * from t") == done[1]  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("name", CREATIONS)
def test_a_table_that_the_same_work_creates_meanwhile_is_recognised(
    name: str, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in KINDS[name].before:
        house.sql(statement)
    winner = house.another()
    before_the_folder(monkeypatch, lambda: run(winner, KINDS[name]))
    outcome = run(house, KINDS[name])
    assert (outcome.skipped, outcome.version, times_done(house)) == (True, 0, 1)


@pytest.mark.parametrize("moment", [before_the_commit, before_the_folder])
@pytest.mark.parametrize("name", CREATIONS)
def test_a_table_that_other_work_creates_meanwhile_is_kept_and_the_error_asks_for_a_rerun(
    name: str, moment: Callable[..., None], house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in KINDS[name].before:
        house.sql(statement)
    winner = house.another()
    moment(monkeypatch, lambda: winner.sql("create table t as select -1L as id, 0L as part", OTHER_WORK))
    with pytest.raises(ConcurrentCreateError, match="Nothing was applied: run it again"):
        run(house, KINDS[name])
    assert house.rows("select * from t") == [(-1, 0)]
    with pytest.raises(RelationExistsError):
        run(house, KINDS[name])


@pytest.mark.parametrize("moment", [before_the_commit, before_the_folder])
def test_a_creation_with_if_not_exists_or_or_replace_accepts_another_writers_table(
    moment: Callable[..., None], house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner = house.another()
    moment(monkeypatch, lambda: winner.sql("create table t as select -1L as id", OTHER_WORK))
    house.sql("create table if not exists t as select 5L as id")
    assert house.rows("select * from t") == [(-1,)]
    moment(monkeypatch, lambda: winner.sql("create table u as select -1L as id", OTHER_WORK))
    house.sql("create or replace table u as select 5L as id", WORK)
    assert house.rows("select * from u") == [(5,)]


def test_work_that_depends_on_an_earlier_query_is_skipped_too_and_the_next_write_sees_the_current_table(
    spark: SparkSession, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.sql("create table t as select 1L as id")
    winner = house.another()
    loser = house.in_one_cut()
    highest = loser.sql("select max(id) from t").collect()[0][0]
    statement = f"insert into t select {highest} + 1"
    before_the_commit(monkeypatch, lambda: winner.sql(statement, WORK))
    assert run(loser, Kind(statement)).skipped
    loser.sql("delete from t where id = 1")
    assert house.rows("select id from t") == [(2,)]

    loser.sql("select max(id) from t").collect()
    before_the_commit(monkeypatch, lambda: winner.sql("insert into t values (9)", OTHER_WORK))
    with pytest.raises(ConcurrentModificationError):
        loser.sql("insert into t values (3)", ("silt/shop/model.shop.t/run-1/main+1", 1))


def test_work_is_skipped_even_if_a_later_change_makes_its_statement_invalid(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.sql("create table t as select 1L as id, 'a' as tag")
    winner, statement = house.another(), "insert into t (id, tag) values (2, 'b')"

    def other() -> None:
        winner.sql(statement, WORK)
        winner.sql("alter table t drop column tag")

    after_the_look(monkeypatch, other)
    assert run(house, Kind(statement)).skipped
    assert house.rows("select * from t") == [(1,), (2,)]


def test_an_error_that_another_writer_did_not_cause_is_not_changed(house: House) -> None:
    house.sql("create table t as select 1L as id")
    with pytest.raises(RelationExistsError):
        house.sql("create table t as select 2L as id", WORK)
    assert times_done(house) == 0


@pytest.mark.parametrize(
    "name",
    [
        *("first creation", "append", "merge"),
        *(pytest.param(each, marks=pytest.mark.long) for each in ("clone", "replacement", "replace on", "delete")),
    ],
)
def test_of_four_concurrent_writers_one_does_the_work(name: str, patient_house: House) -> None:
    house, outcomes = patient_house, list[Outcome]()
    for statement in KINDS[name].before:
        house.sql(statement)
    writers = [house.another() for _ in range(4)]
    side_by_side([lambda w=w: outcomes.append(run(w, KINDS[name])) for w in writers])  # type: ignore[misc]
    assert Counter(each.skipped for each in outcomes) == {True: 3, False: 1}
    assert len({each.version for each in outcomes}) == 1
    assert times_done(house) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "create or replace view v as select 1 as n",
        "create view if not exists v as select 1 as n",
        "create or replace function f(n int) returns int return n + 1",
        "create schema if not exists fresh",
        "drop table if exists t",
        "drop view if exists w",
        "create table if not exists u (n int)",
        "create or replace table u as select 1 as n",
        "alter table t drop columns if exists (gone)",
        "alter table t alter column n type bigint",
        "comment on table t is 'numbers'",
        "insert overwrite t by name select 1 as n, 2 as gone",
    ],
)
def test_idempotent_statements_without_a_transaction_may_run_four_times_concurrently(
    statement: str, patient_house: House
) -> None:
    house = patient_house
    house.sql("create table t as select 1 as n, 2 as gone")
    house.sql("create view w as select 1 as n")
    writers = [house.another() for _ in range(4)]
    side_by_side([lambda w=w: w.sql(statement) for w in writers])  # type: ignore[misc]  # passes if no error is raised


def test_a_view_that_two_writers_concurrently_put_in_place_of_a_table_exists(patient_house: House) -> None:
    house = patient_house
    house.sql("create table t as select 1 as n")
    writers = [house.another() for _ in range(4)]
    text = "create or replace view t as select 2 as n"
    side_by_side([lambda w=w: w.warehouse.execute(text, replace_tables=True) for w in writers])  # type: ignore[misc]
    assert house.rows("select n from t") == [(2,)]

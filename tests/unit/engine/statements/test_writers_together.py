"""Concurrent readers and writers of one table."""

from __future__ import annotations

from functools import partial

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import ConcurrentCreateError, ConcurrentModificationError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.unit.engine.house import House, side_by_side


def test_deleted_rows_never_return_while_another_writer_updates_the_table(patient_house: House) -> None:
    house = patient_house
    house.sql("create table people as select id, 0 as score from range(40)")
    eraser, enricher = house.another(), house.another()

    def erase() -> None:
        for person in range(0, 40, 4):
            eraser.sql(f"delete from people where id in ({person}, {person + 1})")

    def enrich() -> None:
        for _ in range(10):
            enricher.sql("update people set score = score + 1 where id % 2 = 0")

    side_by_side([erase, enrich])
    assert house.rows("select id, score from people") == sorted(
        ((n, 10 if n % 2 == 0 else 0) for n in range(40) if n % 4 > 1), key=repr
    )


def test_a_reader_concurrent_with_overwrites_sees_complete_versions_only(patient_house: House) -> None:
    house = patient_house
    house.sql("create table numbers as select 0 as round, id from range(20)")
    writer, reader = house.another(), house.another()
    reads: list[tuple[object, ...]] = []

    def overwrite() -> None:
        for round_ in range(1, 8):
            writer.sql(f"insert overwrite numbers select {round_}, id from range({20 + round_})")

    def read() -> None:
        for _ in range(15):
            reads.extend(reader.rows("select round, count(*) from numbers group by round"))

    side_by_side([overwrite, read])
    assert len(reads) == 15
    assert all(count == 20 + round_ for round_, count in reads)  # type: ignore[operator]


def test_a_statement_reads_one_consistent_cut_of_several_tables(patient_house: House) -> None:
    house = patient_house
    house.sql("create table first as select 0 as n")
    house.sql("create table second as select 0 as n")
    writer, reader = house.another(), house.another()
    reads: list[tuple[object, ...]] = []

    def write() -> None:
        for n in range(1, 8):
            writer.sql(f"insert overwrite first select {n}")
            writer.sql(f"insert overwrite second select {n}")

    def read() -> None:
        for _ in range(15):
            reads.extend(reader.rows("select a.n, b.n from first a cross join second b"))

    side_by_side([write, read])
    assert all(first - second in (0, 1) for first, second in reads)  # type: ignore[operator]


def test_concurrent_appends_are_all_committed_once(patient_house: House) -> None:
    house = patient_house
    house.sql("create table events (writer int, n int)")

    def append(writer: House, number: int) -> None:
        for n in range(5):
            writer.sql(f"insert into events values ({number}, {n})", txn=(f"writer-{number}", n))

    writers = [house.another() for _ in range(3)]
    side_by_side([partial(append, w, i) for i, w in enumerate(writers)])
    assert house.rows("select writer, n from events") == [(w, n) for w in range(3) for n in range(5)]


def test_concurrent_updates_of_disjoint_files_of_an_unpartitioned_table_both_commit_without_a_rerun(
    spark: SparkSession, house: House
) -> None:
    house.sql("create table accounts as select id, 0 as balance from range(10)")
    house.sql("insert into accounts select id, 0 from range(100, 110)")
    other = house.another()
    first = house.warehouse.execute("update accounts set balance = 1 where id < 10").outcome
    second = other.warehouse.execute("update accounts set balance = 2 where id >= 100").outcome
    assert first is not None and second is not None
    assert (first.statement_attempts, second.statement_attempts) == (1, 1)
    assert house.rows("select distinct balance from accounts") == [(1,), (2,)]


def test_of_two_creators_of_a_table_one_is_asked_to_run_it_again(house: House) -> None:
    outcomes: list[str] = []

    def create(writer: House) -> None:
        try:
            writer.sql("create table fresh as select * from range(1000)")
            outcomes.append("created")
        except ConcurrentCreateError as error:
            assert "run it again" in str(error).lower()
            outcomes.append("again")
        except Exception as error:
            outcomes.append(type(error).__name__)

    side_by_side([partial(create, w) for w in (house.another(), house.another())])
    assert sorted(outcomes) in (["again", "created"], ["RelationExistsError", "created"])
    assert house.rows("select count(*) from fresh") == [(1000,)]


def test_a_write_that_depends_on_an_earlier_query_fails_after_another_writers_commit(
    spark: SparkSession, house: House
) -> None:
    house.sql("create table marks as select 1 as n")
    work = house.in_one_cut()
    highest = work.sql("select max(n) from marks").collect()[0][0]
    house.sql("insert into marks values (7)")
    with pytest.raises(ConcurrentModificationError):
        work.sql(f"insert into marks select {highest} + 1")
    assert house.rows("select n from marks") == [(1,), (7,)]


def test_writers_of_windows_that_share_a_file_all_commit_within_their_attempts(house: House) -> None:
    """All but one conflict in the first round; then they run one after the other, and none conflicts again."""
    house.sql("create table events as select id, id div 10 as day from range(0, 80, 1, 1)")
    warehouses = [house.warehouse.for_session(house.warehouse.spark.newSession()) for _ in range(8)]
    outcomes: list[int] = []

    def replace_day(warehouse: Warehouse, day: int) -> None:
        query = f"select id + 1000 as id, {day}L as day from range({day}) where id = 0"
        result = warehouse.execute(f"insert into events by name replace where day = {day} {query}")
        assert result.outcome is not None
        outcomes.append(result.outcome.statement_attempts)

    side_by_side([partial(replace_day, w, day) for day, w in enumerate(warehouses)])
    assert house.rows("select id, day from events") == [(1000, day) for day in range(1, 8)]
    assert max(outcomes) <= house.warehouse.settings.statement_attempts


def test_writers_of_windows_in_separate_files_never_run_again(house: House) -> None:
    house.sql("create table events (id bigint, at timestamp)")
    warehouses = [house.warehouse.for_session(house.warehouse.spark.newSession()) for _ in range(8)]
    outcomes: list[int] = []

    def replace_day(warehouse: Warehouse, day: int) -> None:
        start, end = (f"timestamp '2026-03-0{each} 00:00:00+00:00'" for each in (day, day + 1))
        rows = f"select {day}L as id, {start} as at union all select {day}L, {end} - interval 1 microsecond"
        for _ in range(2):
            text = f"insert into events by name replace where at >= {start} and at < {end} {rows}"
            result = warehouse.execute(text)
            assert result.outcome is not None
            outcomes.append(result.outcome.statement_attempts)

    side_by_side([partial(replace_day, w, day) for day, w in enumerate(warehouses, 1)])
    assert outcomes == [1] * 16
    assert house.rows("select id from events") == [(day,) for day in range(1, 9) for _ in range(2)]

"""Snapshots beyond dbt's suite: new, changed, vanished and returned rows, and a key never has two current rows."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalFolder

SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: people}, {name: values}, {name: doubles}]
snapshots:
"""


def do(project: Any, *statements: str) -> None:
    for statement in statements:
        project.run_sql(statement)


def rows(project: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in project.run_sql(query, fetch="all")]


def count(project: Any, table: str) -> int:
    ((found,),) = rows(project, f"select count(*) from {{schema}}.{table}")
    return int(found)


def snapshot_of(project: Any, name: str) -> Snapshot:
    place = RelationName(project.database, project.test_schema, name)
    return project.adapter.connections.catalog.table(place).snapshot()


def check_current(project: Any, table: str, key: str, expected: int, names: str = "dbt_valid_to is null") -> None:
    """Checks that each key has one current row, and that no two rows have the same id."""
    found = rows(project, f"select count(*), count(distinct {key}) from {{schema}}.{table} where {names}")
    assert found == [(expected, expected)]
    assert rows(project, f"select count(*) - count(distinct dbt_scd_id) from {{schema}}.{table}") == [(0,)]


PEOPLE = """
create table {schema}.people as
select * from values
    (1, 'a', timestamp'2026-01-01 10:00:00', 10), (2, null, timestamp'2026-01-01 10:00:00', null),
    (3, 'c', null, 30), (4, 'd', timestamp'2026-01-01 10:00:00', 40)
as v (id, part, changed_at, score)
"""
OF_PEOPLE = """
  - name: by_check
    relation: source('raw', 'people')
    config: {unique_key: [id, part], strategy: check, check_cols: all, hard_deletes: invalidate}
  - name: by_score
    relation: source('raw', 'people')
    config: {unique_key: id, strategy: check, check_cols: [score]}
  - name: standing
    relation: source('raw', 'people')
    config: {unique_key: id, strategy: check, check_cols: [score], updated_at: changed_at}
  - name: closed
    relation: source('raw', 'people')
    config: {unique_key: [id, part], strategy: timestamp, updated_at: changed_at, hard_deletes: invalidate}
  - name: marked
    relation: source('raw', 'people')
    config: {unique_key: [id, part], strategy: timestamp, updated_at: changed_at, hard_deletes: new_record}
  - name: far
    relation: source('raw', 'people')
    config:
      unique_key: id
      strategy: timestamp
      updated_at: changed_at
      invalidate_hard_deletes: true
      dbt_valid_to_current: timestamp'9999-12-31'
"""


@pytest.mark.long
class TestRowsThatGoAndComeBack:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"snapshots.yml": SOURCES + OF_PEOPLE}

    def test_each_key_has_one_current_row_whatever_happens_in_its_source(self, project: Any) -> None:
        do(project, PEOPLE)
        run_dbt(["snapshot"])
        run_dbt(["snapshot"])
        tables = ("by_check", "by_score", "standing", "closed", "marked", "far")
        assert {name: count(project, name) for name in tables} == dict.fromkeys(tables, 4)

        do(
            project,
            "update {schema}.people set score = 20 where id = 2",
            "update {schema}.people set changed_at = timestamp'2026-02-01' where id = 3",
            "delete from {schema}.people where id = 4",
        )
        run_dbt(["snapshot"])
        for table in ("by_check", "by_score"):
            history = f"select score from {{schema}}.{table} where id = 2 order by dbt_valid_from"
            assert rows(project, history) == [(None,), (20,)]
        assert rows(project, "select id from {schema}.by_score where dbt_valid_to is not null") == [(2,)]
        check_current(project, "by_check", "id", 3)
        check_current(project, "standing", "id", 4)
        check_current(project, "closed", "id", 3)
        check_current(project, "marked", "id", 4)
        check_current(project, "far", "id", 3, "dbt_valid_to = timestamp'9999-12-31'")
        ended = "select dbt_valid_to = timestamp'2026-02-01' from {schema}.closed where id = 3 and changed_at is null"
        assert rows(project, ended) == [(True,)]

        do(project, "insert into {schema}.people values (4, 'd', timestamp'2026-01-01 10:00:00', 40)")
        run_dbt(["snapshot"])
        for table in ("by_check", "by_score", "standing", "closed"):
            check_current(project, table, "id", 4)
        check_current(project, "marked", "id", 4, "dbt_valid_to is null and dbt_is_deleted = 'False'")
        check_current(project, "far", "id", 4, "dbt_valid_to = timestamp'9999-12-31'")
        for table, versions in {"closed": 2, "marked": 3, "far": 2}.items():
            history = f"select dbt_valid_from, dbt_valid_to from {{schema}}.{table} where id = 4 order by 1"
            found = rows(project, history)
            assert len(found) == versions
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(found))


VALUES = """
create table {schema}.values as
select 1 as id, map('k', 1, 'l', 2) as tags, named_struct('m', map(1, array(map('x', 1.5)))) as deep,
    parse_json('{{"z": 1}}') as loose, array(1, 2) as list, cast(1.10 as decimal(10, 2)) as price,
    timestamp_ntz'2026-01-01 10:00:00' as noon, date'2026-01-01' as day, 'x' as `order`, 5 as number
union all
select 2, null, null, null, null, null, timestamp_ntz'2026-01-01 10:00:00', date'2026-01-01', null, null
"""


SAME_VALUES = """
create or replace table {schema}.values as
select id as ID, if(id = 1, map('l', 2, 'k', 1), null) as Tags, * except (id, tags) from {schema}.values
"""
OTHER_COLUMNS = """
create or replace table {schema}.values as
select ID, deep, loose, list, price, timestamp_ntz'2026-03-01' as noon, date'2026-03-01' as day,
    `order` as `select`, 'new' as added, number, `order`
from {schema}.values where ID = 1
"""
OTHER_TYPE = """
create or replace table {schema}.values as select * except (number), 'no number' as number from {schema}.values
"""
OF_VALUES = """
  - name: all_types
    relation: ref('passing')
    config:
      unique_key: id
      strategy: check
      check_cols: all
      hard_deletes: new_record
      partition_by: id
      tblproperties: {delta.appendOnly: 'false'}
      pre_hook: create or replace temporary view before as select 1
      post_hook: insert into {{ target.schema }}.hooked select count(*) from {{ this }}
  - name: by_noon
    relation: source('raw', 'values')
    config: {unique_key: id, strategy: timestamp, updated_at: noon, hard_deletes: invalidate}
  - name: by_day
    relation: source('raw', 'values')
    config: {unique_key: id, strategy: timestamp, updated_at: day, hard_deletes: new_record}
  - name: by_words
    relation: source('raw', 'values')
    config: {unique_key: id, strategy: check, check_cols: ['`order`', NUMBER]}
"""


class TestSourcesThatChangeTheirColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        passing = "{{ config(materialized='ephemeral') }} select * from {{ source('raw', 'values') }}"
        return {"snapshots.yml": SOURCES + OF_VALUES, "passing.sql": passing}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        """In a time zone other than the machine's and UTC."""
        conf = dbt_profile_target["spark_conf"] | {"spark.sql.session.timeZone": "Asia/Kathmandu"}
        return dbt_profile_target | {"spark_conf": conf}

    def test_any_type_is_compared_and_any_change_of_columns_is_followed(self, project: Any) -> None:
        do(project, VALUES, "create table {schema}.hooked (n bigint)")
        run_dbt(["snapshot"])
        assert snapshot_of(project, "all_types").metadata.partition_columns == ("id",)
        assert snapshot_of(project, "all_types").metadata.configuration["delta.appendOnly"] == "false"

        do(project, SAME_VALUES)
        run_dbt(["snapshot"])
        assert {name: count(project, name) for name in ("all_types", "by_words")} == {"all_types": 2, "by_words": 2}
        assert rows(project, "select n from {schema}.hooked") == [(2,), (2,)]

        do(project, "update {schema}.values set deep = named_struct('m', map(1, array(map('x', 2.5)))) where id = 1")
        run_dbt(["snapshot"])
        check_current(project, "all_types", "id", 2)
        assert count(project, "all_types") == 3

        do(project, OTHER_COLUMNS)
        run_dbt(["snapshot"])
        check_current(project, "all_types", "id", 2)
        current = (
            "select id, dbt_is_deleted, added, `order`, `select` from {schema}.all_types where dbt_valid_to is null"
        )
        assert sorted(rows(project, current)) == [(1, "False", "new", "x", "x"), (2, "True", None, None, None)]
        for table, expected in {"by_noon": [(1, 2, 1), (2, 1, 0)], "by_day": [(1, 2, 1), (2, 2, 1)]}.items():
            counts = f"select id, count(*), count_if(dbt_valid_to is null) from {{schema}}.{table} group by id"
            assert sorted(rows(project, counts)) == expected
        ended = (
            "select dbt_valid_to = timestamp_ntz'2026-03-01' from {schema}.by_noon where id = 1 order by dbt_valid_from"
        )
        assert rows(project, ended) == [(True,), (None,)]

        do(project, OTHER_TYPE)
        _, output = run_dbt_and_capture(["snapshot", "--select", "all_types"], expect_pass=False)
        assert "number" in output and count(project, "all_types") == 5


BY_LINE = """
  - name: lines
    relation: source('raw', 'doubles')
    config: {{unique_key: {key}, strategy: timestamp, updated_at: changed_at}}
"""

OF_DOUBLES = """
  - name: history
    relation: source('raw', 'doubles')
    config: {unique_key: [id, part], strategy: timestamp, updated_at: changed_at}
  - name: by_number
    relation: source('raw', 'people')
    config: {unique_key: id, strategy: timestamp, updated_at: score, hard_deletes: invalidate}
"""


class TestKeysThatAreThereTwice:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"snapshots.yml": SOURCES + OF_DOUBLES}

    def test_duplicate_keys_are_an_error_that_names_the_key_and_nothing_is_written(self, project: Any) -> None:
        row = "select 7 as id, cast(null as string) as part, timestamp'2026-01-01' as changed_at"
        do(project, f"create table {{schema}}.doubles as {row} union all {row}", PEOPLE)
        _, output = run_dbt_and_capture(["snapshot", "--select", "history"], expect_pass=False)
        assert '2 rows of the query of history have the unique key {"id":7,"part":null}' in output
        assert not project.adapter.get_relation(project.database, project.test_schema, "history")

        do(project, f"create or replace table {{schema}}.doubles as {row}")
        run_dbt(["snapshot", "--select", "history"])
        doubled = "(8, 'x', timestamp'2026-01-01'), (8, 'x', timestamp'2026-02-01')"
        do(project, f"insert into {{schema}}.doubles values {doubled}")
        _, output = run_dbt_and_capture(["snapshot", "--select", "history"], expect_pass=False)
        assert '2 rows of the query of history have the unique key {"id":8,"part":"x"}' in output
        assert snapshot_of(project, "history").version == 0

    def test_a_numeric_key_cannot_close_deleted_rows_and_the_error_reports_it(self, project: Any) -> None:
        run_dbt(["snapshot", "--select", "by_number"])
        _, output = run_dbt_and_capture(["snapshot", "--select", "by_number"], expect_pass=False)
        assert "set `updated_at` to a column with a time" in output


class TestAChangedKey:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"snapshots.yml": SOURCES + BY_LINE.format(key="[id, part]")}

    def test_a_key_that_several_current_rows_share_is_refused_and_a_wider_key_is_followed(self, project: Any) -> None:
        row = "select 7 as id, '{}' as part, timestamp'2026-0{}-01' as changed_at"
        do(project, f"create table {{schema}}.doubles as {row.format('a', 1)} union all {row.format('b', 1)}")
        run_dbt(["snapshot"])

        write_file(SOURCES + BY_LINE.format(key="id"), project.project_root, "models", "snapshots.yml")
        do(project, f"create or replace table {{schema}}.doubles as {row.format('a', 2)}")
        _, output = run_dbt_and_capture(["snapshot"], expect_pass=False)
        assert f'2 current rows of {project.test_schema}.lines have the unique key {{"id":7}}' in output
        assert "set it back, or give the snapshot another alias" in output
        assert snapshot_of(project, "lines").version == 0

        write_file(SOURCES + BY_LINE.format(key="[id, part]"), project.project_root, "models", "snapshots.yml")
        run_dbt(["snapshot"])
        assert count(project, "lines") == 3
        write_file(SOURCES + BY_LINE.format(key="[part, id]"), project.project_root, "models", "snapshots.yml")
        run_dbt(["snapshot"])
        assert count(project, "lines") == 3


@pytest.mark.in_folders("the other one writes while a folder is written; test_beaten_at_each_commit.py has both places")
class TestTwoSnapshotsAtOnce:
    """The other snapshot runs in another session, which writes the same statement just before the
    first one's commit.
    """

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"snapshots.yml": SOURCES + OF_PEOPLE.split("  - name: by_score")[0].replace("by_check", "history")}

    def test_neither_of_two_concurrent_snapshots_creates_a_second_current_row(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        do(project, PEOPLE)
        with monkeypatch.context() as patch:
            overtaken = overtake(project, patch, "history")
            _, output = run_dbt_and_capture(["snapshot"], expect_pass=False)
        assert overtaken == [0] and "run it again" in output.lower()
        check_current(project, "history", "id", 4)

        do(project, "update {schema}.people set score = 1", "delete from {schema}.people where id = 4")
        with monkeypatch.context() as patch:
            overtaken = overtake(project, patch, "history")
            results = run_dbt(["snapshot"])
        assert overtaken == [1] and results[0].adapter_response["statement_attempts"] == 2
        check_current(project, "history", "id", 3)
        assert count(project, "history") == 7

    def test_a_rerun_with_the_same_run_id_is_skipped(self, project: Any) -> None:
        do(project, "update {schema}.people set score = 2")
        run_dbt(["snapshot", "--vars", "silt_run_id: R1"])
        do(project, "update {schema}.people set score = 3")
        (result,) = run_dbt(["snapshot", "--vars", "silt_run_id: R1"])
        assert result.adapter_response["skipped"] is True
        check_current(project, "history", "id", 3)


def overtake(project: Any, patch: pytest.MonkeyPatch, table: str) -> list[int]:
    """Runs the snapshot's statement in another session when dbt is about to commit it; returns the versions of that
    session.
    """
    made: list[int] = []
    put = LocalFolder.put_if_absent

    def put_after_the_other(folder: LocalFolder, name: str, data: bytes) -> Any:
        if Path(folder._path).parent.name == table and not made:
            made.append(-1)
            (written,) = Path(project.project_root, "target", "run").rglob(f"{table}.sql")
            spark = project.adapter.connections.get_thread_connection().handle.session.newSession()
            other = Warehouse(spark, project.adapter.config.credentials.warehouse, schema=project.test_schema)
            outcome = other.execute(written.read_text()).outcome
            made[0] = outcome.version  # type: ignore[assignment, union-attr]
        return put(folder, name, data)

    patch.setattr(LocalFolder, "put_if_absent", put_after_the_other)
    return made

"""Snapshots of rows that change, vanish and return over several days, compared with a Python model of each strategy."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from dbt.tests.util import run_dbt

Moment: TypeAlias = datetime | date | None
Source: TypeAlias = Mapping[int, tuple[datetime | None, str]]
"""Key -> `changed_at` and value."""

SEED = 32
RANDOM_RUNS = 4

CLOCK = """
{% macro snapshot_get_time() %}timestamp'{{ var('now', '2026-05-01 10:00:00') }}'{% endmacro %}
"""


@dataclass(frozen=True)
class Config:
    """A snapshot; `updated_at` is empty if new versions begin at the time of the run."""

    strategy: str
    hard_deletes: str
    updated_at: str

    @property
    def name(self) -> str:
        return "_".join(filter(None, (self.strategy, self.hard_deletes, self.updated_at)))

    @property
    def yaml(self) -> str:
        configs = f"strategy: {self.strategy}, hard_deletes: {self.hard_deletes}, unique_key: id"
        configs += ", check_cols: [value]" if self.strategy == "check" else ""
        configs += f", updated_at: {self.updated_at}" if self.updated_at else ""
        return f"  - {{name: {self.name}, relation: \"source('raw', 'people')\", config: {{{configs}}}}}\n"

    def moment(self, at: datetime | None) -> Moment:
        """Returns the time in the type of the snapshot's times."""
        return at.date() if at is not None and self.updated_at == "changed_on" else at


HARD_DELETES = ("ignore", "invalidate", "new_record")
CONFIGS = [
    *(Config("timestamp", hard, at) for hard in HARD_DELETES for at in ("changed_at", "changed_on")),
    *(Config("check", hard, at) for hard in HARD_DELETES for at in ("", "changed_at")),
    Config("check", "new_record", "changed_on"),
]
FEW_CONFIGS = [
    *(Config("timestamp", hard, "changed_at") for hard in HARD_DELETES),
    *(Config("check", hard, "") for hard in HARD_DELETES),
    Config("check", "new_record", "changed_on"),
]
"""Each strategy, each treatment of deleted rows and each kind of time."""


@dataclass(frozen=True)
class Version:
    key: int
    value: str
    updated_at: Moment
    start: Moment
    end: Moment = None
    is_deleted: bool = False


@dataclass
class History:
    """The expected content of a snapshot."""

    config: Config
    versions: dict[int, list[Version]] = field(default_factory=dict)

    def run(self, at: datetime, source: Source) -> None:
        now = self.config.moment(at)
        for key in source.keys() | self.versions.keys():
            rows = self.versions.setdefault(key, [])
            if key in source:
                changed_at, value = source[key]
                time = self.config.moment(changed_at) if self.config.updated_at else now
                self._seen(rows, Version(key, value, time, time), now)
            else:
                self._missing(rows, now)

    def _seen(self, rows: list[Version], new: Version, now: Moment) -> None:
        last = rows[-1] if rows else None
        if last is None:
            rows.append(new)
        elif last.end is not None:
            ended = max(each for row in rows for each in (row.start, row.end) if each is not None)
            rows.append(replace(new, start=new.start if later(new.start, ended) else latest(now, ended)))
        elif last.is_deleted or self._changed(last, new):
            start = new.start if later(new.start, last.start) else latest(now, last.start)
            rows[-1] = replace(last, end=start)
            rows.append(replace(new, start=start))

    def _changed(self, last: Version, new: Version) -> bool:
        return last.value != new.value if self.config.strategy == "check" else later(new.updated_at, last.updated_at)

    def _missing(self, rows: list[Version], now: Moment) -> None:
        last = rows[-1]
        if last.end is not None or last.is_deleted or self.config.hard_deletes == "ignore":
            return
        end = latest(now, last.start)
        rows[-1] = replace(last, end=end)
        if self.config.hard_deletes == "new_record":
            rows.append(Version(last.key, last.value, now, end, is_deleted=True))


def later(new: Moment, old: Moment) -> bool:
    return new is not None and (old is None or new > old)


def latest(*times: Moment) -> Moment:
    return max(each for each in times if each is not None)


def day(number: int, hour: int = 10) -> datetime:
    return datetime(2026, 5, number, hour)


FUTURE = datetime(2031, 1, 1)
MARCH = datetime(2026, 3, 1)
SCRIPT: list[tuple[datetime, Source]] = [
    (day(1), {1: (MARCH, "a"), 2: (FUTURE, "a"), 3: (day(2, 8), "a"), 4: (None, "a")}),
    (day(2, 10), {4: (None, "a")}),
    (day(2, 12), {1: (MARCH, "a"), 3: (day(2, 8), "a"), 4: (day(2, 11), "b")}),
    (day(2, 14), {1: (MARCH, "a")}),
    (day(2, 16), {1: (MARCH, "a"), 3: (day(2, 8), "b"), 4: (day(2, 9), "b")}),
    (day(3), {1: (day(2, 11), "b"), 2: (day(3, 8), "b"), 3: (day(2, 7), "c"), 4: (None, "c")}),
]
"""The times of the runs with their rows: rows that vanish and return on the same day, rows that change before their
return is noticed, and rows that vanish before they begin.
"""


def at_random(runs: int) -> Iterator[tuple[datetime, Source]]:
    chance = random.Random(SEED)
    at, source = SCRIPT[-1][0], dict(SCRIPT[-1][1])
    for _ in range(runs):
        at += timedelta(hours=chance.choice((1, 5, 24, 40)))
        for key in range(1, 9):
            if chance.random() < 0.4:
                source.pop(key, None)
            elif chance.random() < 0.6:
                hours = chance.choice((-1, -20, -30, -100, 200, None, None))
                standing = source.get(key, (None, ""))[0]
                source[key] = (standing if hours is None else at + timedelta(hours=hours), chance.choice("abc"))
        yield at, dict(source)


def table_of(source: Source) -> str:
    rows = (
        f"({key}, {'null' if at is None else repr(str(at))}, '{value}')" for key, (at, value) in sorted(source.items())
    )
    columns = "cast(id as int) as id, cast(at as timestamp) as changed_at, cast(at as date) as changed_on, value"
    return (
        f"create or replace table {{schema}}.people as select {columns} from values {', '.join(rows)} v (id, at, value)"
    )


def stored(project: Any, config: Config) -> list[Version]:
    deleted = "dbt_is_deleted" if config.hard_deletes == "new_record" else "'False'"
    columns = f"id, value, dbt_updated_at, dbt_valid_from, dbt_valid_to, {deleted} = 'True'"
    found = project.run_sql(f"select {columns} from {{schema}}.{config.name}", fetch="all")
    return [Version(*(without_zone(each) for each in row)) for row in found]


def without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def in_order(versions: list[Version]) -> list[Version]:
    return sorted(versions, key=lambda row: (row.key, str(row.start or ""), str(row.end or "9"), str(row)))


class TestHistories:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sources = 'sources: [{name: raw, schema: "{{ target.schema }}", tables: [{name: people}]}]\nsnapshots:\n'
        return {"snapshots.yml": sources + "".join(config.yaml for config in CONFIGS)}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"clock.sql": CLOCK}

    @pytest.mark.parametrize(
        ("configs", "random_runs"),
        [(FEW_CONFIGS, 0), pytest.param(CONFIGS, RANDOM_RUNS, marks=pytest.mark.long)],
        ids=["few", "all"],
    )
    def test_each_strategy_records_the_history_of_its_python_model(
        self, project: Any, configs: list[Config], random_runs: int
    ) -> None:
        histories = [History(config) for config in configs]
        names = [config.name for config in configs]
        for name in names:
            project.run_sql(f"drop table if exists {{schema}}.{name}")
        for at, source in [*SCRIPT, *at_random(random_runs)]:
            project.run_sql(table_of(source))
            run_dbt(["snapshot", "--select", *names, "--vars", f"now: '{at}'"])
            for history in histories:
                history.run(at, source)
                expected = [row for rows in history.versions.values() for row in rows]
                found = stored(project, history.config)
                assert in_order(found) == in_order(expected), (SEED, at, history.config.name)
                assert all(row.end is None or row.start is None or row.start <= row.end for row in found)
        for config in configs:
            self.check_ids(project, config)

    def check_ids(self, project: Any, config: Config) -> None:
        """Checks that no two versions share an id, and that the first versions have the ids of dbt's formula."""
        table = f"{{schema}}.{config.name}"
        counted = project.run_sql(f"select count(*) - count(distinct dbt_scd_id) from {table}", fetch="one")
        assert counted[0] == 0, config.name
        time = config.updated_at or "timestamp'2026-05-01 10:00:00'"
        formula = f"md5(concat(id, '|', coalesce(cast({time} as string), '')))"
        first = f"select count(*) from {table} where dbt_scd_id = {formula} and value = 'a'"
        assert project.run_sql(first, fetch="one")[0] >= 4, config.name


ODD_SOURCE = """
create or replace table {schema}.people as
select 1 as `/test/column`, 'x' as `c``d`, '{value}' as `unnamed: 0`, 'Key' as `order`, timestamp'{at}' as `updated at`,
    named_struct('a.b', 1) as `s.t`
"""
ODD_SNAPSHOTS = """
sources: [{name: raw, schema: "{{ target.schema }}", tables: [{name: people}]}]
snapshots:
  - name: backquoted
    relation: source('raw', 'people')
    config: {strategy: check, unique_key: /test/column, check_cols: ["c`d", "unnamed: 0"], hard_deletes: new_record}
  - name: of_keys
    relation: source('raw', 'people')
    config:
      strategy: timestamp
      unique_key: ["c`d", '"order"', "lower(`order`)", "`s.t`.`a.b`"]
      updated_at: updated at
      hard_deletes: invalidate
      snapshot_meta_column_names:
        dbt_valid_from: valid from
        dbt_valid_to: "valid`to"
        dbt_scd_id: "`scd id`"
        dbt_updated_at: /time
  - name: of_one_expression
    relation: source('raw', 'people')
    config:
      strategy: check
      unique_key: concat(`c``d`, '/', `/test/column`)
      check_cols: ['UNNAMED: 0']
      updated_at: '`updated at`'
      hard_deletes: new_record
      dbt_valid_to_current: timestamp'9999-12-31'
      snapshot_meta_column_names: {dbt_is_deleted: Is Deleted, dbt_valid_to: TO}
"""


class TestOddNames:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"snapshots.yml": ODD_SNAPSHOTS}

    def counts(self, project: Any) -> list[int]:
        names = ("backquoted", "of_keys", "of_one_expression")
        return [project.run_sql(f"select count(*) from {{schema}}.{name}", fetch="one")[0] for name in names]

    def test_columns_of_any_name_can_be_keys_times_and_checked_columns_in_every_run(self, project: Any) -> None:
        for value, at, expected in (
            ("v", "2026-05-01", [1, 1, 1]),
            ("v", "2026-05-01", [1, 1, 1]),
            ("w", "2026-05-02", [2, 2, 2]),
        ):
            project.run_sql(ODD_SOURCE.replace("{value}", value).replace("{at}", at))
            run_dbt(["snapshot"])
            assert self.counts(project) == expected
        project.run_sql("delete from {schema}.people")
        run_dbt(["snapshot"])
        assert self.counts(project) == [3, 2, 3]
        times = project.run_sql("select `valid from`, `valid``to` from {schema}.of_keys order by 1", fetch="all")
        assert [end is not None for _, end in times] == [True, True]
        marks = "select `Is Deleted` from {schema}.of_one_expression where to = timestamp'9999-12-31'"
        assert project.run_sql(marks, fetch="all") == [("True",)]

"""Rules in the log of another writer: no write runs code or reads files through them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import RuleNotAllowedError, SiltError
from dbt.adapters.silt.engine.sql.query.rule_texts import DETERMINISTIC, OF_CHANCE, REFUSED, problem
from tests.unit.engine.house import House

pytestmark = pytest.mark.in_folders("the attacks read and write local files")

SECRET = "s3cr3t"
Fields = dict[str, dict[str, str]]
Change = Callable[[Fields, Fields], None]


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "id_rsa").write_text(SECRET)
    return tmp_path / "id_rsa"


def hostile(house: House, change: Change) -> House:
    """Creates a table whose newest metadata another writer has changed."""
    house.sql(
        "create table t (id bigint, v string default 'x', g string generated always as (concat('a', id))) "
        "tblproperties (delta.feature.invariants = 'supported')"
    )
    rewrite(house, change)
    return house.another()


def rewrite(house: House, change: Change) -> None:
    """Commits the table's first metadata with another writer's change."""
    log = Path(house.location("t")) / "_delta_log"
    lines = (log / f"{0:020d}.json").read_text().splitlines()
    metadata = next(json.loads(line) for line in lines if "metaData" in line)["metaData"]
    schema = json.loads(metadata["schemaString"])
    change(metadata, {each["name"]: each["metadata"] for each in schema["fields"]})
    metadata["schemaString"] = json.dumps(schema)
    version = len(list(log.glob("*.json")))
    (log / f"{version:020d}.json").write_text(json.dumps({"metaData": metadata}) + "\n")


def put(kind: str, text: str) -> Change:
    def change(metadata: Fields, columns: Fields) -> None:
        if kind == "default":
            columns["v"]["CURRENT_DEFAULT"] = text
        elif kind == "generated":
            columns["g"]["delta.generationExpression"] = text
        elif kind == "check":
            metadata["configuration"]["delta.constraints.c"] = f"({text}) is not null"
        else:
            columns["id"]["delta.invariants"] = json.dumps({"expression": {"expression": f"({text}) is not null"}})

    return change


ATTACKS = [
    "(select max(value) from text.`{secret}`)",
    "(select is from (select value as is from text.`{secret}`))",
    "(from text.`{secret}`)",
    "(table text.`{secret}`)",
    "(map 1 using 'touch {marker}' as x)",
    "java_method('java.lang.System', 'setProperty', 'silt.attacked', 'yes')",
    "`reflect`('java.lang.System', 'setProperty', 'silt.attacked', 'yes')",
    "system.builtin.try_reflect /* x */ ('java.lang.System', 'setProperty', 'silt.attacked', 'yes')",
    "identifier('ref' || 'lect')('java.lang.System', 'setProperty', 'silt.attacked', 'yes')",
]

KINDS = ["default", "generated", "check", "invariant"]


def _marks(kind: int, attack: int) -> list[pytest.MarkDecorator]:
    over_connect = [pytest.mark.connect] if attack in (0, 5) else []
    return over_connect if attack % len(KINDS) == kind else [*over_connect, pytest.mark.long]


KINDS_AND_ATTACKS = [
    pytest.param(kind, text, marks=_marks(number, at))
    for number, kind in enumerate(KINDS)
    for at, text in enumerate(ATTACKS)
]
"""Each kind of rule with each text; in tests that are not marked long, each text once."""

WRITES = [
    "insert into main.t (id) values (1)",
    "insert into main.t (id, v) values (1, default)",
    "merge into main.t using (select 1 as n) on id = n when not matched then insert (id) values (n)",
    "insert overwrite main.t (id) select 1",
]


@pytest.mark.parametrize(("kind", "attack"), KINDS_AND_ATTACKS)
def test_no_write_evaluates_a_rule_that_reads_a_file_or_runs_code(
    house: House, secret: Path, tmp_path: Path, kind: str, attack: str
) -> None:
    marker = tmp_path / "marker"
    other = hostile(house, put(kind, attack.format(secret=secret, marker=marker)))
    for write in WRITES:
        with pytest.raises(RuleNotAllowedError, match="SILT_RULE_NOT_ALLOWED"):
            other.sql(write)
    assert other.rows("select * from main.t") == []
    assert not marker.exists()
    found = other.rows("select reflect('java.lang.System', 'getProperty', 'silt.attacked')")
    assert found == [("null",)]


def test_a_hostile_default_and_constraint_can_be_dropped(house: House) -> None:
    other = hostile(house, put("default", "reflect('a', 'b')"))
    other.sql("alter table main.t alter column v drop default")
    other.sql("insert into main.t (id) values (1)")
    assert other.rows("select * from main.t") == [(1, None, "a1")]


@pytest.mark.parametrize(
    "text", ["check (reflect('a', 'b') is not null)", "check (rand() > 0)", "check (id in (select 1))"]
)
def test_rules_of_a_definition_are_checked_in_the_same_way(house: House, text: str) -> None:
    house.sql("create table u (id int)")
    with pytest.raises(SiltError, match="SILT_RULE_NOT_ALLOWED"):
        house.sql(f"alter table u add constraint c {text}")


@pytest.mark.parametrize(
    "text",
    [
        "id > 0 and v is not null",
        "v in ('a', 'b') and (id between 1 and 2 or not (id = 3))",
        "extract(year from ts) > 2000",
        "trim(both 'x' from v) <> '' and trim(from v) <> ''",
        "a is distinct from b and exists(xs, x -> x > (1))",
        "cast(id as decimal(10, 2)) > 0 and cast(v as varchar(3)) is null",
        "reduce(xs, 0, (a, b) -> a + b) > 0 and (map('a', 1)['a'] = 1)",
        "`select` > 0 and values = 1 and (table) is null",
        "case when (id > 1) then (2) else (3) end > system.builtin.abs(-1)",
        "ts <= current_timestamp()",
    ],
)
def test_ordinary_rules_are_allowed(text: str) -> None:
    assert problem(text) is None


def test_every_built_in_function_of_spark_is_either_allowed_or_refused_in_rules(house: House) -> None:
    known = {name for (name,) in house.warehouse.spark.sql("show system functions").collect() if name.isidentifier()}
    assert known - {"case"} <= DETERMINISTIC | OF_CHANCE | REFUSED
    assert not DETERMINISTIC & REFUSED

"""The facts of a build are the same in the commit of a publication, whatever other statements changed its table.

A build, and statements before and after it that read other views, functions and files, run alone and in a transaction.
The variable FACTS_SEEDS names the seeds: FACTS_SEEDS=17 repeats a failure, and FACTS_SEEDS=0-99 tries many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.builds.present import decide_now
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.log.builds import UNITS_KEY, Build, BuildFacts
from dbt.adapters.silt.engine.kernel.publication import branch_changes
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.unit.engine.house import House

_BUILD = ("build", 1)
_COMPARED = ("readVersions", "readDefinitions", "readFiles", "origin", "operation")
_SETTING = {
    "raw": "create table raw as select int(id) id from range(9)",
    "gone": "create view gone as select id from raw where id < 0",
    "stg": "create view stg as select id from raw where id > 1",
    "one": "create function one() returns int return 1",
    "nothing": "create function nothing() returns int return -1",
}


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def seeds() -> list[int]:
    first, _, last = os.environ.get("FACTS_SEEDS", "0-5").partition("-")
    return list(range(int(first), int(last or first) + 1))


def prepared(house: House, folder: Path) -> None:
    for each in ("in", "other"):
        (folder / each).mkdir()
        (folder / each / "a.csv").write_text("1\n")
    for text in _SETTING.values():
        house.sql(text)


def files_in(folder: Path) -> str:
    return f"(select id from read_files('{folder}', format => 'csv', schema => 'id int'))"


def build_of(folder: Path, drawn: random.Random) -> str:
    source = drawn.choice(["stg", "raw", "(select one() as id)", files_in(folder / "in")])
    return f"create or replace table t as select id from {source} as s"


def hooks(folder: Path, drawn: random.Random) -> list[str]:
    """Statements on the same table that change no row: they commit, because each has a transaction identifier."""
    source = ["gone", "(select nothing() as id)", f"(select id from {files_in(folder / 'other')} where id > 1)"]
    choices = [f"delete from t where id in (select -5 from {each} as s)" for each in source]
    choices += [f"insert into t select id from {each} as s where id = -7" for each in source]
    choices += ["comment on table t is 'seen'", "alter table t set tblproperties ('a' = 'b')"]
    return [drawn.choice(choices) for _ in range(drawn.randint(0, 3))]


def run(warehouse: Warehouse, build: str, before: Sequence[str], after: Sequence[str], name: str) -> None:
    for number, text in enumerate((*before, build, *after)):
        is_build = number == len(before)
        warehouse.execute(
            text,
            _BUILD if is_build else (f"hook {number}", 1),
            commit_info={"origin": f"statement {number}"},
            build=Build("node", "code", name) if is_build else None,
        )


def facts_in(house: House) -> tuple[BuildFacts | None, dict[str, Any]]:
    """The facts of the build, and the fields by which a rerun decides."""
    log = house.log("t")
    infos = (each.info for each in log.newest_commits())
    found = next(filter(None, map(BuildFacts.of_info, infos)), None)
    recorded = commit_search.find_commit(log, _BUILD[0])
    assert recorded is not None
    fields = recorded.commit.info.to_json()
    read = fields.get("readVersions", {}).items()
    fields["readVersions"] = {name: versions for name, versions in read if name != log.name}
    return found, {name: fields.get(name) for name in _COMPARED}


def compare(house: House, folder: Path, seed: int) -> None:
    drawn = random.Random(seed)
    prepared(house, folder)
    build = build_of(folder, drawn)
    before, after = hooks(folder, drawn), hooks(folder, drawn)
    house.sql("create table t (id int)")
    run(house.warehouse, build, before, after, "alone")
    facts, fields = facts_in(house)
    assert facts is not None
    house.sql("drop table t")
    house.sql("create table t (id int)")
    with house.warehouse.transaction() as together:
        run(together, build, before, after, "alone")
    assert facts_in(house) == (facts, fields), (build, before, after)


@pytest.mark.parametrize("seed", seeds())
def test_the_facts_of_a_published_commit_are_those_of_the_build_alone(house: House, files: Path, seed: int) -> None:
    compare(house, files, seed)


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "keeps no statement's own fields": ("_units", lambda _: {}),
    "gives each statement the fields of all": (
        "_units",
        lambda commits: {"build": {k: v for each in commits for k, v in each.info.to_json().items()}},
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_comparison_finds_a_planted_mistake(
    house: House, files: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(branch_changes, name, wrong)
    with pytest.raises(AssertionError):
        compare(house, files, 1)


def test_another_definition_of_a_view_builds_a_table_that_a_later_statement_of_its_transaction_read(
    house: House, files: Path
) -> None:
    prepared(house, files)
    for _ in range(2):
        with house.warehouse.transaction() as together:
            text = "create or replace table t as select id from stg"
            together.execute(text, _BUILD, build=Build("node", "code"))
            together.execute("delete from t where id in (select id from gone)", ("hook", 1))
        house.sql("insert into raw values (50)")
    house.sql("create or replace view stg as select id from raw where id > 2")
    decision = decide_now(house.warehouse.catalog, house.log("t"), Build("node", "code"), "")
    assert "silt.main.stg has a new definition" in decision.reasons
    assert "silt.main.gone has a new definition" not in decision.reasons


def test_a_commit_of_a_single_statement_states_its_fields_once(house: House, files: Path) -> None:
    prepared(house, files)
    with house.warehouse.transaction() as together:
        together.execute("create or replace table t as select id from stg", _BUILD, build=Build("node", "code"))
    assert UNITS_KEY not in next(house.log("t").newest_commits()).info.extra

"""Nodes of every kind in the life of runs: built empty, held, corrected, published, reused, changed and rolled back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.cloud.servers import ObjectServer
from tests.functional.pairs.kinds import (
    PARTS,
    TESTED,
    WITHOUT_UNIT_TESTS,
    Kinds,
    Parts,
    build,
    contents,
    days,
    next_day,
    node_of,
    table_of,
)
from tests.functional.runs.test_publishing import shown, silt

STORED = ("seeds", *(kind for kind in PARTS if kind != "views"))
"""The kinds whose nodes are tables."""
KINDS = (*STORED, "views", "files")
FILE = "tables.duckdb"
HOOK = "insert into {{ target.schema }}.audit values ('%s {{ this.identifier }}')"
EMPTY: Mapping[str, Parts] = {
    **{kind: {} for kind in KINDS},
    "seeds": days(0)["seeds"],
    "python": {"seeds": days(0)["python"]["seeds"]},
}
"""What a build with `--empty` leaves: a seed has its rows, and a python model reads all rows of tables."""


class Life:
    """What was seen after each step: the messages of the nodes, the rows of each node by part, and the hooks' notes."""

    def __init__(self, project: Any, program: Warehouse) -> None:
        self.project, self.program = project, program
        self.messages: dict[str, Mapping[str, str]] = {}
        self.rows: dict[str, Mapping[str, Parts]] = {}
        self.hooks: dict[str, Counter[str]] = {}
        self.refused = self.cloned = 0
        self.names: dict[str, set[str]] = {}
        self.in_file: dict[str, Mapping[str, Parts]] = {}

    def notes(self, step: str, messages: Mapping[str, str]) -> None:
        run = partial(self.project.run_sql, fetch="all")
        self.messages[step] = messages
        self.rows[step] = contents(run, self.project.test_schema)
        self.hooks[step] = Counter(row[0] for row in run("select event from {schema}.audit"))
        self.names[step] = set(shown(self.project)) - {"audit"}
        if (file := Path(self.project.project_root, FILE)).exists():
            with duckdb.connect(str(file), read_only=True) as connection:
                self.in_file[step] = contents(
                    lambda query: connection.execute(query.replace("`", '"')).fetchall(),
                    self.project.test_schema,
                    STORED,
                )

    def notes_branch(self, step: str, run_id: str) -> None:
        """Notes the rows that a program sees on the branch of a run."""
        self.program.sql(f"set silt.branch = '{run_id}'")
        self.rows[step] = self.seen_by(self.program)
        self.program.sql("reset silt.branch")

    def clones_on_branch(self, run_id: str) -> None:
        """Clones a table on the branch of a run, and notes the number of its rows."""
        table, copied = (f"{self.project.test_schema}.{name}" for name in (table_of("seeds"), "copied"))
        self.program.sql(f"set silt.branch = '{run_id}'")
        self.program.sql(f"create table {copied} shallow clone {table}")
        self.cloned = self.program.table(copied).count()
        self.program.sql("reset silt.branch")

    def notes_transaction(self, step: str) -> None:
        """Notes the rows that a transaction sees which changes the first row of the seed, and then fails."""
        with pytest.raises(ZeroDivisionError), self.program.transaction() as together:
            for kind in STORED:
                table = f"{self.project.test_schema}.{table_of(kind)}"
                together.sql(f"update {table} set v = v + 1000 where id = 1")
            self.rows[step] = self.seen_by(together)
            self.rows[f"{step}: others"] = self.seen_by(self.program)
            raise ZeroDivisionError

    def seen_by(self, warehouse: Warehouse) -> Mapping[str, Parts]:
        return contents(lambda query: warehouse.sql(query).collect(), self.project.test_schema)


class Living(Kinds):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any], cloud: ObjectServer | None) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", **({} if cloud else {"duckdb_file": FILE})}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        configs = {"+reuse": "unchanged", "+pre-hook": HOOK % "pre", "+post-hook": HOOK % "post"}
        return {
            "on-run-start": "create table if not exists {{ target.schema }}.audit (event string)",
            **dict.fromkeys(("models", "seeds", "snapshots"), configs),
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            "small.sql": "select * from {{ ref('log') }} where v > {{ var('most', 1000) }}",
            "enough.sql": "select 1 from (select count(*) as n from {{ ref('cut') }}) where n < {{ var('least', 0) }}",
        }

    @pytest.fixture(scope="class")
    def life(self, project: Any, program: Warehouse, landing: Path) -> Life:
        life = Life(project, program)
        life.notes("empty", build("monday", "--empty"))
        life.notes("held", build("monday", expect_pass=False, most=0))
        life.notes_branch("branch", "monday")
        life.notes("corrected", build("monday"))
        build("tuesday", "--select", "log")  # its run that finds no change shows that the next one finds none
        life.notes("reused", build("no change", "--exclude", "batches"))
        next_day(project, landing)
        life.notes("changed", build("wednesday", *WITHOUT_UNIT_TESTS))
        life.notes_transaction("transaction")
        assert silt(project, "rollback", "wednesday", "--yes") == 0
        life.notes("rolled back", {})
        life.notes("again", build("thursday", *WITHOUT_UNIT_TESTS))
        life.notes("emptied", build("friday", "--empty", *WITHOUT_UNIT_TESTS, expect_pass=False, least=1))
        life.notes_branch("empty branch", "friday")
        life.clones_on_branch("friday")
        life.refused = silt(project, "rollback", "friday", "--yes")
        assert silt(project, "drop-run", "friday") == 0
        life.notes("dropped", {})
        return life


def read(kinds: tuple[str, ...]) -> list[Any]:
    return [pytest.param(kind, part, id=f"{kind}-{part}") for kind in kinds for part in PARTS[kind]]


@pytest.mark.connect(gate=True)
@pytest.mark.kept
@pytest.mark.accelerated
class TestALife(Living):
    @pytest.mark.parametrize(("kind", "part"), read(tuple(PARTS)))
    def test_a_node_has_the_rows_of_what_it_reads_on_both_days(self, life: Life, kind: str, part: str) -> None:
        assert life.rows["corrected"][kind].get(part) == days(0)[kind][part]
        assert life.rows["again"][kind].get(part) == days(1)[kind][part]

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_rows_of_a_held_run_are_on_its_branch_only(self, life: Life, kind: str) -> None:
        assert life.rows["held"][kind] == life.rows["empty"][kind]
        assert life.rows["branch"][kind] == days(0)[kind]

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_corrected_run_publishes_the_rows_that_it_has_built(self, life: Life, kind: str) -> None:
        assert life.rows["corrected"][kind] == days(0)[kind]
        assert life.messages["corrected"][node_of(kind)].startswith("success: ")

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_build_with_empty_is_filled_by_the_next_command_of_the_run(self, life: Life, kind: str) -> None:
        assert life.rows["empty"][kind] == EMPTY[kind]
        assert life.rows["corrected"][kind] == days(0)[kind]

    @pytest.mark.parametrize("kind", [kind for kind in STORED if kind != "microbatch"])
    def test_an_unchanged_node_is_reused_and_a_changed_one_is_built(self, life: Life, kind: str) -> None:
        node = node_of(kind)
        assert "unchanged since" in life.messages["reused"][node]
        assert "unchanged since" not in life.messages["changed"][node]
        assert life.rows["reused"][kind] == days(0)[kind] and life.rows["changed"][kind] == days(1)[kind]

    @pytest.mark.parametrize("kind", ["differences", "changed_keys"])
    def test_the_unit_tests_of_a_reused_node_pass(self, life: Life, kind: str) -> None:
        assert "unchanged since" in life.messages["reused"][node_of(kind)]
        assert life.messages["reused"][f"of_{kind}"].startswith("pass: ")

    @pytest.mark.parametrize("kind", STORED)
    def test_a_rolled_back_run_leaves_the_rows_before_it_and_the_next_run_builds_them_again(
        self, life: Life, kind: str
    ) -> None:
        assert life.rows["changed"][kind] == days(1)[kind]
        assert life.rows["rolled back"][kind] == days(0)[kind]
        assert life.rows["again"][kind] == days(1)[kind]

    def test_views_and_files_are_read_as_they_are_after_a_rollback(self, life: Life) -> None:
        assert life.rows["rolled back"]["views"] == days(0)["views"]
        assert life.rows["rolled back"]["files"] == {
            "seeds": days(0)["files"]["seeds"],
            "files": days(1)["files"]["files"],
        }

    @pytest.mark.parametrize("kind", KINDS)
    def test_hooks_run_once_in_each_run_that_builds_the_node(self, life: Life, kind: str) -> None:
        notes = [f"{when} {table_of(kind)}" for when in ("pre", "post")]
        once, twice = dict.fromkeys(notes, 1), dict.fromkeys(notes, 2)
        assert counted(life.hooks["empty"], notes) == once
        assert counted(life.hooks["corrected"], notes) == twice, "the work with `--empty` is work of its own"
        if kind in STORED and kind not in ("microbatch", "silt_changes"):
            assert counted(life.hooks["reused"], notes) == twice, "hooks of a reused node do not run"
        assert life.hooks["rolled back"] == life.hooks["reused"]
        again = {note: number + 1 for note, number in counted(life.hooks["reused"], notes).items()}
        assert counted(life.hooks["again"], notes) == again

    @pytest.mark.parametrize("kind", TESTED)
    def test_unit_tests_of_a_run_read_what_only_its_branch_has_and_run_no_hook(self, life: Life, kind: str) -> None:
        for step in ("empty", "held", "corrected"):
            assert life.messages[step][f"of_{kind}"].startswith("pass: ")

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_transaction_sees_its_own_changes_and_leaves_nothing_if_it_fails(self, life: Life, kind: str) -> None:
        assert life.rows["transaction: others"][kind] == life.rows["changed"][kind]
        assert life.rows["rolled back"]["seeds"] == days(0)["seeds"]
        assert life.rows["transaction"][kind] == raised(kind)

    @pytest.mark.parametrize("kind", STORED)
    @pytest.mark.in_folders("DuckDB reads the files of a folder")
    def test_the_duckdb_file_has_the_visible_rows_at_the_end_of_each_command(self, life: Life, kind: str) -> None:
        for step in ("empty", "held", "corrected", "reused", "changed", "again", "emptied"):
            assert life.in_file[step][kind] == life.rows[step][kind], step
        if kind != "seeds":  # which `--empty` fills
            assert life.in_file["held"][kind] != life.rows["branch"][kind]
        assert life.in_file["rolled back"][kind] == life.rows["changed"][kind], "`silt rollback` is no dbt command"

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_projects_macros_name_the_relation_of_each_step(self, life: Life, kind: str) -> None:
        assert table_of(kind) in set.intersection(*life.names.values())
        assert not any(node_of(each) in names for names in life.names.values() for each in KINDS)

    def test_a_clone_that_a_session_makes_on_the_branch_is_dropped_with_the_run(self, life: Life) -> None:
        assert life.cloned == len(days(1)["seeds"]["seeds"])
        assert "copied" not in life.names["emptied"] | life.names["dropped"]

    def test_a_held_run_cannot_be_rolled_back(self, life: Life) -> None:
        assert life.refused == 2

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_held_run_with_empty_hides_no_row_and_is_dropped(self, life: Life, kind: str) -> None:
        assert life.rows["emptied"][kind] == life.rows["dropped"][kind] == days(1)[kind]
        if kind in ("differences", "views", "files"):
            assert life.rows["empty branch"][kind] == {}


def counted(notes: Counter[str], names: list[str]) -> dict[str, int]:
    return {name: notes[name] for name in names}


def raised(kind: str) -> Parts:
    """The rows of the second day, with 1000 more for the first row of each table."""
    added = 2000 if kind == "files" else 1000
    return {
        part: sorted((id_, v + added if id_ == 1 else v) for id_, v in rows) for part, rows in days(1)[kind].items()
    }

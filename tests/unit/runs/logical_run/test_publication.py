"""The end of a dbt command whose run is published: published, held or lost, with the lines that say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dbt import selected_resources
from dbt.adapters.silt.dbt_seams.dbt_command import CommandEnd
from dbt.adapters.silt.dbt_seams.run_again import RanNodes
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import NotATableError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.records.command_result import Ending
from dbt.adapters.silt.records.units import RunContext
from dbt.adapters.silt.runs.logical_run import publication as module
from dbt.adapters.silt.runs.logical_run.publication import RunPublication
from dbt.adapters.silt.runs.logical_run.publish_mode import PublishMode
from tests.unit.engine.catalog.branches.test_branch_names import AFTER, BEFORE, STORES, filled, opened, shown
from tests.unit.engine.catalog.branches.test_run_branches import work

SUCCESS, FAILED = CommandEnd(True, Ending.SUCCESS), CommandEnd(True, Ending.FAILED)
A, B, EPHEMERAL, TEST = "model.p.a", "model.p.b", "model.p.e", "test.p.t_a.1"


@dataclass(frozen=True)
class TypedCommand:
    """What a publication knows of the dbt command that was typed."""

    id: str
    target_path: Path
    which: str = "build"
    is_new_run: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> str:
        return f"dbt build -s {self.id}"

    @property
    def continuing_command(self) -> str:
        return self.line

    @property
    def context(self) -> RunContext:
        return RunContext(project="shop", target="dev", run_id="run-1")

    def on_connection(self, is_hidden: bool) -> None:
        assert is_hidden


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    for level in ("info", "warning", "error"):
        monkeypatch.setattr(module.logger, level, lines.append)
    return lines


@dataclass(frozen=True)
class Profile:
    """The fields of a profile that a publication reads."""

    publish: str
    publish_attempts: int = 3
    held_inputs: str = "newest"
    database: str = "silt"
    schema: str = "main"
    branch: str = ""
    upkeep: dict[str, str] | None = None


@dataclass(frozen=True)
class CatalogOutside:
    """A catalog, without Spark: nothing else than the branch of the run is written."""

    catalog: Catalog
    listed_files: Container[str] = ()

    @property
    def published(self) -> Catalog:
        return self.catalog

    def forget_branch(self) -> None:
        """Forgets nothing: the profile has no branch."""

    def dbt_errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    def begin_again(self) -> None:
        pytest.fail("no test repeats nodes")

    def run_later(self, statement: LaterStatement) -> None:
        pytest.fail(f"no test leaves statements for later: {statement}")

    def register(self, published: Collection[RelationName]) -> None:
        """Registers nothing: the profile has no metastore."""

    def keep_up(self) -> str | None:
        pytest.fail("the profile has no upkeep")

    def write_duckdb_file(self) -> None:
        """Writes nothing: the profile has no such file."""


@dataclass
class Build:
    """A dbt command with some results."""

    publication: RunPublication
    folder: Path
    name: str

    @classmethod
    def begin(
        cls, catalog: Catalog, folder: Path, name: str, *selected: str, mode: PublishMode = PublishMode.AFTER_TESTS
    ) -> Build:
        selected_resources.set_selected_resources(set(selected))
        typed: Any = TypedCommand(name, folder)
        found = RunPublication(typed, Profile(mode.value), CatalogOutside(catalog))
        found.begin()
        return cls(found, folder, name)

    def end(self, end: CommandEnd, **statuses: str) -> CommandEnd:
        names = {"a": A, "b": B, "t": TEST, "h": "operation.p.p-on-run-end-0"}
        results = [{"unique_id": names[each], "status": status} for each, status in statuses.items()]
        document = {"metadata": {"invocation_id": self.name}, "results": results}
        (self.folder / "run_results.json").write_text(json.dumps(document))
        if end.finished:
            ran = frozenset(selected_resources.SELECTED_RESOURCES)
            project = frozenset([A, B, EPHEMERAL, TEST, "operation.p.p-on-run-end-0"])
            self.publication.again(RanNodes(ran, {}, results, frozenset, project))
        return self.publication.end(end)


def test_a_run_is_published_if_everything_has_run(store: Store, tmp_path: Path, said: list[str]) -> None:
    build = Build.begin(opened(store), tmp_path, "one", A, EPHEMERAL, TEST)
    work(build.publication.catalog)
    assert build.end(SUCCESS, a="success", t="warn").publication == "published"
    assert shown(opened(store, 1)) == AFTER and said[-1].startswith("Published at one moment: silt.main.again@v")


def test_a_failure_of_an_earlier_command_holds_the_run(store: Store, tmp_path: Path, said: list[str]) -> None:
    first = Build.begin(opened(store), tmp_path, "one", A, TEST)
    work(first.publication.catalog)
    assert first.end(FAILED, a="success", t="fail").publication == "held"
    assert Build.begin(opened(store, 1), tmp_path, "two", B).end(SUCCESS, b="success").publication == "held"
    assert shown(opened(store, 2)) == BEFORE
    assert said.count("Held: 1 test failed, so no change of the run run-1 is visible") == 2
    assert any("in another command of the run: `dbt build -s one`: failed: t_a" in each for each in said)
    assert Build.begin(opened(store, 3), tmp_path, "three", TEST).end(SUCCESS, t="pass").publication == "published"
    assert shown(opened(store, 4)) == AFTER


@pytest.mark.parametrize("mode", [PublishMode.AFTER_TESTS, PublishMode.AFTER_RUN])
def test_a_failed_test_counts_for_its_own_command_by_the_mode(
    store: Store, tmp_path: Path, said: list[str], mode: PublishMode
) -> None:
    build = Build.begin(opened(store), tmp_path, "one", A, TEST, mode=mode)
    expected = "published" if mode is PublishMode.AFTER_RUN else "held"
    assert build.end(FAILED, a="success", t="fail").publication == expected


def test_a_run_on_request_waits_for_its_last_task(store: Store, tmp_path: Path, said: list[str]) -> None:
    for number, name in enumerate(("one", "two")):
        build = Build.begin(opened(store, number), tmp_path, name, A, mode=PublishMode.ON_REQUEST)
        work(build.publication.catalog)
        assert build.end(SUCCESS, a="success").publication == "held"
    assert shown(opened(store, 2)) == BEFORE and said[-1] == "  silt publish run-1 --if-passed"
    runs = opened(store, 3).run_branches("silt")
    assert not runs.commands(runs.find("run-1")).standing()


@pytest.mark.parametrize(
    ("end", "publication", "why"),
    [
        (CommandEnd(False, Ending.FAILED, "not all\nwere fresh"), "held", "ended with an error (not all were fresh)"),
        (CommandEnd(False, Ending.INTERRUPTED), None, "was interrupted"),
    ],
)
def test_a_command_that_ends_outside_of_a_node_is_held_until_one_ends_by_itself(
    store: Store, tmp_path: Path, said: list[str], end: CommandEnd, publication: str | None, why: str
) -> None:
    assert Build.begin(opened(store), tmp_path, "one", A).end(end, a="success").publication == publication
    assert f"Held: the command {why}, so no change of the run run-1 is visible" in said
    assert "  publish it anyway: silt publish run-1, or drop it: silt drop-run run-1" in said
    assert Build.begin(opened(store, 1), tmp_path, "two", A).end(SUCCESS, a="success").publication == "published"


def other(catalog: Catalog) -> CommandDocuments:
    runs = catalog.run_branches("silt")
    documents = runs.commands(runs.find("run-1"))
    documents.begin(RunCommand("other", "dbt build -s b", "host", 7, selected=frozenset([B])))
    return documents


def test_the_command_that_ends_first_leaves_the_publication_to_the_other(
    store: Store, tmp_path: Path, said: list[str]
) -> None:
    build = Build.begin(opened(store), tmp_path, "one", A)
    beside = other(opened(store, 1))
    work(build.publication.catalog)
    assert build.end(SUCCESS, a="success").publication == "held"
    assert shown(opened(store, 2)) == BEFORE
    assert any("`dbt build -s b` (process 7 of host) is at work" in each for each in said)
    beside.end(CommandResults(passed=frozenset([B])))
    assert Build.begin(opened(store, 3), tmp_path, "two", A).end(SUCCESS, a="success").publication == "published"
    assert shown(opened(store, 4)) == AFTER


@pytest.mark.parametrize("how", ["published", "dropped"])
def test_a_run_that_another_process_ends_is_reported_as_it_is(
    store: Store, tmp_path: Path, said: list[str], how: str
) -> None:
    build = Build.begin(opened(store), tmp_path, "one", A)
    work(build.publication.catalog)
    runs = opened(store, 1).run_branches("silt")
    run = runs.find("run-1")
    end: dict[str, Callable[[], object]] = {
        "published": lambda: runs.publish(run, runs.existing(run)),
        "dropped": lambda: runs.drop(run, runs.existing(run, to_drop=True)),
    }
    runs.commands(run).all()
    end[how]()
    error = build.publication.explained(NotATableError("it is no table"))
    assert f"another process has {how} the run run-1 while this command worked on it" in str(error)
    assert build.end(SUCCESS, a="success").ending is Ending.FAILED
    assert not any("no change of the run" in each for each in said) or how == "dropped"
    assert shown(opened(store, 2)) == (AFTER if how == "published" else BEFORE)


def test_the_completed_publication_of_a_killed_process_is_named(store: Store, tmp_path: Path, said: list[str]) -> None:
    response = {"skipped": True, "table": "silt.main.kept", "table_version": 2}
    assert module._published({}, [{"adapter_response": response}], "").endswith("no table: silt.main.kept@v2")
    assert module._published({}, [], "") == "Published: no table has changed"

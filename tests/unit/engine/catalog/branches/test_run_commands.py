"""A run is published only if nothing of its commands prevents it, in whatever commands it is split."""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.branches import run_commands as module
from dbt.adapters.silt.engine.catalog.branches.attempts import COMMAND
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import PATIENCE_MS, CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.run_branches import RunBranches
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand, from_json, to_json
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    CorruptLogError,
    RunInProgressError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import (
    AFTER,
    BEFORE,
    KEPT,
    STORES,
    Dying,
    filled,
    opened,
    shown,
)
from tests.unit.engine.catalog.branches.test_run_branches import RUN, append_once, left, work

A, B, TEST_A = "model.p.a", "model.p.b", "test.p.t_a.1"


@pytest.fixture(autouse=True)
def _locks_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands have the same ids in each test, unlike dbt's, and tests may run at the same time."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


@dataclass
class Command:
    """A dbt command that works on the branch of the run."""

    catalog: Catalog
    runs: RunBranches
    documents: CommandDocuments
    branch: Branch
    inside: Catalog

    @classmethod
    def begin(
        cls, catalog: Catalog, name: str, *selected: str, entered: list[CommandDocuments] | None = None
    ) -> Command:
        runs = catalog.run_branches("silt")
        entered = [] if entered is None else entered

        def enter(documents: CommandDocuments) -> None:
            entered.append(documents)
            documents.begin(RunCommand(name, f"dbt build -s {name}", "host", 7, selected=frozenset(selected)))

        _, branch = runs.open(RUN, enter)
        return cls(catalog, runs, entered[-1], branch, catalog.on_branch("silt", branch))

    def end(self, passed: set[str] | None = None, failed: set[str] | None = None, missing: str = "") -> bool:
        """Ends the command as dbt does; returns whether it has published the run."""
        results = CommandResults(frozenset(passed or ()), frozenset(failed or ()), frozenset(filter(None, [missing])))
        self.documents.end(results)
        for _ in range(3):
            if self.documents.standing():
                return False
            run = self.runs.find(RUN.run_id)
            self.runs.read_others(run, self.branch, self.documents)
            with contextlib.suppress(RunInProgressError):
                self.runs.publish(run, self.branch, self.documents)
                return True
        raise AssertionError("the command does not end")


def end_process(documents: CommandDocuments) -> None:
    """Kills the process of a command: the system releases its lock, and its file remains."""
    documents._stop()
    documents._release(keeps_file=True)


def test_a_failed_test_holds_what_a_later_command_builds(store: Store) -> None:
    first = Command.begin(opened(store), "first", A, TEST_A)
    append_once(first.inside, KEPT)
    assert not first.end({A}, {TEST_A})
    second = Command.begin(opened(store, 1), "second", B)
    work(second.inside)
    assert not second.end({B})
    assert shown(opened(store, 2)) == BEFORE
    assert "failed: t_a" in second.documents.standing().lines("second")[0]
    assert Command.begin(opened(store, 3), "third", TEST_A).end({TEST_A})
    assert shown(opened(store, 4)) == AFTER and not left(store)


def test_the_last_of_parallel_commands_publishes(store: Store) -> None:
    first, second = (Command.begin(opened(store, each), f"c{each}", A if each else B) for each in (0, 1))
    work(first.inside)
    assert not first.end({B})
    assert shown(opened(store, 2)) == BEFORE
    assert second.end({A})
    assert shown(opened(store, 3)) == AFTER


def test_a_pass_at_the_same_time_as_a_failure_does_not_correct_it(store: Store) -> None:
    first, second = (Command.begin(opened(store, each), f"c{each}", A) for each in (0, 1))
    assert not first.end(failed={A})
    assert not second.end({A})
    assert Command.begin(opened(store, 2), "third", A).end({A})


def test_the_nodes_of_a_killed_command_must_run_in_a_later_command(store: Store) -> None:
    killed = Command.begin(opened(store), "killed", A, B)
    end_process(killed.documents)
    second = Command.begin(opened(store, 1), "second", A)
    assert not second.end({A})
    assert "was killed" in second.documents.standing().reason
    assert Command.begin(opened(store, 2), "third", B).end({B})


def test_a_command_on_another_machine_counts_as_killed_without_a_sign_of_life(store: Store) -> None:
    elsewhere = Command.begin(opened(store), "elsewhere", A)
    elsewhere.documents._release()  # this machine has no file of its lock
    runs = opened(store, 1).run_branches("silt")
    with pytest.raises(RunInProgressError, match="process 7 of host"):
        runs.check_idle(runs.find(RUN.run_id))
    later = opened(store, 1, later_ms=PATIENCE_MS + 60_000).run_branches("silt")
    later.check_idle(later.find(RUN.run_id))
    assert later.commands(later.find(RUN.run_id)).standing().ended
    elsewhere.documents._stop()


def test_a_command_that_begins_while_the_run_is_published_is_not_published_unfinished(store: Store) -> None:
    first = Command.begin(opened(store), "first", A)
    work(first.inside)
    first.documents.end(CommandResults(frozenset([A])))
    assert not first.documents.standing()
    second = Command.begin(opened(store, 1), "second", B)
    with pytest.raises(RunInProgressError, match="-s second"):
        first.runs.publish(first.runs.find(RUN.run_id), first.branch, first.documents)
    assert shown(opened(store, 2)) == BEFORE
    assert second.end({B})
    assert shown(opened(store, 3)) == AFTER


def test_an_error_outside_of_the_nodes_holds_the_run_until_a_command_ends_without(store: Store) -> None:
    first = Command.begin(opened(store), "first", A)
    first.documents.end(CommandResults(frozenset([A]), problem="the command ended with an error (no)"))
    standing = first.documents.standing()
    assert standing.has_failed and standing.reason == "the command ended with an error (no)"
    assert Command.begin(opened(store, 1), "second", A).end({A})


def test_a_loser_knows_whether_the_run_was_published_or_dropped(store: Store) -> None:
    first, second = (Command.begin(opened(store, each), f"c{each}", A) for each in (0, 1))
    run = first.runs.find(RUN.run_id)
    assert first.runs.end_of(run) is None
    first.documents.end(CommandResults(frozenset([A])))
    second.documents.end(CommandResults(frozenset([A])))
    first.runs.publish(run, first.branch)
    assert second.runs.end_of(run) == "published"
    with pytest.raises(ConcurrentModificationError, match="has published the run run-1"):
        second.runs.publish(run, second.branch)
    third = Command.begin(opened(store, 2), "third", A)
    run = third.runs.find(RUN.run_id)
    third.runs.drop(run, third.branch)
    assert third.runs.end_of(run) == "dropped"
    third.documents._stop()


def test_a_published_run_is_found_by_its_id_even_if_it_has_changed_nothing(store: Store) -> None:
    assert Command.begin(opened(store), "first", A).end({A})
    runs = opened(store, 1).run_branches("silt")
    assert runs.all() == []
    found = runs.find_published("run-")
    assert found is not None and found.run_id == RUN.run_id
    assert runs.find_published("other") is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"selected": "all"},
        {"results": {"passed": [1]}},
        {"process": "x"},
        {"id": "another"},
        {"after": None},
        {"testsCount": 1},
    ],
)
def test_a_document_that_this_package_did_not_write_is_refused_by_name(store: Store, change: dict[str, object]) -> None:
    command = Command.begin(opened(store), "first", A)
    command.documents.end(CommandResults(frozenset([A])))
    (path,) = [path for path in left(store) if path.endswith(COMMAND)]
    store.put(path, json.dumps({**json.loads(store.read(path)), **change}).encode())
    with pytest.raises(CorruptLogError, match=r"command\.json cannot be read"):
        command.documents.standing()
    assert shown(opened(store, 1)) == BEFORE


def test_a_document_of_a_later_version_is_not_called_damage(store: Store) -> None:
    command = Command.begin(opened(store), "first", A)
    (path,) = [path for path in left(store) if path.endswith(COMMAND)]
    store.put(path, json.dumps({**json.loads(store.read(path)), "format": 2}).encode())
    with pytest.raises(UnsupportedFeatureError, match=r"command\.json was written by a later version"):
        command.documents.standing()


def test_a_document_is_read_as_it_was_written_without_characters_that_a_terminal_obeys() -> None:
    ended = CommandResults(frozenset("a"), frozenset("b"), frozenset("c"), "no")
    command = RunCommand("i", "dbt", "h", 1, 2, frozenset("abc"), False, frozenset("x"), frozenset("y"), ended)
    assert from_json(json.loads(json.dumps(to_json(command)))) == command
    assert from_json(to_json(replace(command, results=None))) == replace(command, results=None)
    assert "\x1b" not in from_json(to_json(replace(command, line="\x1b[2J"))).line


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)], ids=["a few writes", "each write"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_a_command_killed_at_any_write_shows_nothing_while_a_failure_stands(
    make: Callable[[], Store], every: int, fate: str
) -> None:
    for writes in range(0, 60, every):
        store = filled(make)
        assert not Command.begin(opened(store), "first", A, TEST_A).end({A}, {TEST_A})
        dying, over = Dying(store, writes, fate), False
        entered: list[CommandDocuments] = []
        with contextlib.suppress(Killed):
            second = Command.begin(opened(dying, 1), "second", B, entered=entered)
            work(second.inside)
            assert not second.end({B})
            over = True
        for documents in entered:
            end_process(documents)
        dying.arrive()
        assert shown(opened(store, 2, later_ms=60_000)) == BEFORE
        third = Command.begin(opened(store, 3, later_ms=60_000), "third", A, B, TEST_A)
        work(third.inside)
        assert third.end({A, B, TEST_A})
        assert shown(opened(store, 4, later_ms=60_000)) == AFTER
        if over:
            return
    raise AssertionError("the command does not end")


NODES = ("model.p.a", "model.p.b", "model.p.c", "test.p.t_a.1", "test.p.t_b.1", "unit_test.p.c.u")


@dataclass
class History:
    """One run in random commands, with what its state is by the documentation's words."""

    seed: int
    last: dict[str, str] = field(default_factory=dict)
    """The last result of each node; `due` if it was selected and has no result."""
    working: dict[str, frozenset[str]] = field(default_factory=dict)
    commands: dict[str, RunCommand] = field(default_factory=dict)

    def play(self) -> None:
        chance = random.Random(self.seed)
        for number in range(12):
            if self.working and chance.random() < 0.6:
                self._end(chance, chance.choice(sorted(self.working)))
            else:
                self._begin(chance, f"c{number}")
            self._check()

    def _begin(self, chance: random.Random, name: str) -> None:
        free = [each for each in NODES if not any(each in taken for taken in self.working.values())]
        selected = frozenset(chance.sample(free, chance.randint(0, len(free))))
        ended = frozenset(each.id for each in self.commands.values() if each.results is not None)
        after = frozenset(self.commands)
        self.commands[name] = RunCommand(name, name, selected=selected, after=after, after_end=ended)
        self.working[name] = selected
        self.last.update(dict.fromkeys(selected - {n for n, r in self.last.items() if r == "failed"}, "due"))

    def _end(self, chance: random.Random, name: str) -> None:
        selected = self.working.pop(name)
        if chance.random() < 0.25:  # killed: its nodes have no result, and an earlier failure stands
            return
        outcome = {each: chance.choice(["passed", "passed", "passed", "failed", "due"]) for each in sorted(selected)}
        kept = {each for each, how in outcome.items() if how == "due" and self.last[each] == "failed"}
        self.last.update({each: how for each, how in outcome.items() if each not in kept})
        sets = (frozenset(each for each, how in outcome.items() if how == kind) for kind in ("passed", "failed", "due"))
        self.commands[name] = replace(self.commands[name], results=CommandResults(*sets))  # type: ignore[arg-type]

    def _check(self) -> None:
        found = module.standing(self.commands.values(), lambda each: each.id in self.working)
        due = {name for name, how in self.last.items() if how == "due" and not self._is_at_work(name)}
        failed = {name for name, how in self.last.items() if how == "failed"}
        assert {each.id for each in found.at_work} == set(self.working)
        assert set(found.failed) == failed
        assert set(found.left) - {each for each in found.left if self._is_at_work(each)} == due
        assert bool(found) == bool(self.working or due or failed)

    def _is_at_work(self, name: str) -> bool:
        return any(name in selected for selected in self.working.values())


@pytest.mark.parametrize("seeds", [range(400)])
def test_a_run_split_into_random_commands_is_published_only_if_nothing_prevents_it(seeds: range) -> None:
    for seed in seeds:
        History(seed).play()


def forgets_earlier_commands(patch: pytest.MonkeyPatch) -> None:
    original = module.standing
    patch.setattr(module, "standing", lambda known, *rest: original(list(known)[-1:], *rest))


def takes_any_later_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunCommand, "settles", lambda self, other: self.results is not None and other.id != self.id)


def forgets_killed_commands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunCommand, "left", property(lambda self: frozenset()))


def does_not_ask_who_works(patch: pytest.MonkeyPatch) -> None:
    original = module.standing
    patch.setattr(module, "standing", lambda known, is_alive: original(known, lambda _: False))


@pytest.mark.parametrize(
    "plant", [forgets_earlier_commands, takes_any_later_pass, forgets_killed_commands, does_not_ask_who_works]
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        test_a_run_split_into_random_commands_is_published_only_if_nothing_prevents_it(range(400))

"""Statements of clients whose commit meets a cancellation, a lost answer, a full disk or another endpoint."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dbt.adapters.silt.endpoint.core.operations import Operation, State
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalFolder
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from tests.unit.endpoint.conftest import ANN

INSERT = "insert into t values (1)"
_COMMIT = re.compile(r"\d{20}\.json")


@dataclass
class Commits:
    """Holds the commits of tables, or lets them fail.

    Attributes:
        begun: set when a commit has begun.
        goes_on: a commit waits for it.
        before, after: raised instead of the commit, or after it.
    """

    begun: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)
    before: Exception | None = None
    after: Exception | None = None


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Commits:
    """The commits that follow."""
    put, held = LocalFolder.put_if_absent, Commits()
    held.goes_on.set()

    def put_if_absent(folder: LocalFolder, name: str, data: bytes) -> PutResult:
        if not _COMMIT.fullmatch(name):
            return put(folder, name, data)
        held.begun.set()
        held.goes_on.wait()
        if held.before is not None:
            raise held.before
        done = put(folder, name, data)
        if held.after is not None:
            raise held.after
        return done

    monkeypatch.setattr(LocalFolder, "put_if_absent", put_if_absent)
    return held


@pytest.fixture
def table(sessions: Sessions) -> Session:
    """A session with the empty table `t`."""
    session = sessions.open(ANN)
    session.run("create table t (id bigint)")
    return session


def count(session: Session) -> int:
    return int(session.run("select count(*) as n from t").rows.to_pylist()[0]["n"])


def test_a_statement_that_is_cancelled_in_its_commit_is_committed_and_says_so(table: Session, commits: Commits) -> None:
    commits.begun.clear()
    commits.goes_on.clear()
    operation = Operation(table, INSERT)
    commits.begun.wait()
    cancelling = threading.Thread(target=operation.cancel)
    cancelling.start()
    operation._cancelled.wait()
    commits.goes_on.set()
    cancelling.join()
    assert operation.state is State.FINISHED
    assert operation.result().rows_affected == count(table) == 1


def test_a_cancelled_statement_whose_commit_has_no_answer_is_unknown_and_settled_by_its_run_id(
    sessions: Sessions, table: Session, commits: Commits
) -> None:
    session = sessions.open(ANN, {"silt.run_id": "night"})
    commits.begun.clear()
    commits.goes_on.clear()
    commits.after = errors.StorageError("the answer was lost")
    operation = Operation(session, INSERT)
    commits.begun.wait()
    cancelling = threading.Thread(target=operation.cancel)
    cancelling.start()
    operation._cancelled.wait()
    commits.goes_on.set()
    cancelling.join()
    assert operation.state is State.FAILED
    with pytest.raises(errors.CommitStateUnknownError):
        operation.result()
    commits.after = None
    again = sessions.open(ANN, {"silt.run_id": "night"})
    assert again.run(INSERT).rows.to_pylist()[0]["skipped"] is True
    assert count(table) == 1


def test_a_full_disk_fails_the_statement_alone_and_the_session_goes_on(table: Session, commits: Commits) -> None:
    commits.before = errors.NoSpaceError("writing the commit failed: No space left on device")
    with pytest.raises(errors.NoSpaceError):
        table.run(INSERT)
    assert count(table) == 0
    commits.before = None
    table.run(INSERT)
    assert count(table) == 1


def test_two_endpoints_on_a_warehouse_commit_all_their_statements_and_those_of_a_run_once(
    sessions_of: Callable[..., Sessions], table: Session
) -> None:
    endpoints = [sessions_of(max_commit_attempts=attempts) for attempts in (50, 51)]
    assert endpoints[0].house.environment is not endpoints[1].house.environment
    ready = threading.Barrier(2)
    skipped: list[bool] = []

    def write(of: Sessions) -> None:
        own, run = of.open(ANN), of.open(ANN, {"silt.run_id": "night"})
        ready.wait()
        for number in range(3):
            own.run(INSERT)
            node = f'/* {{"node_id": "model.shop.n{number}"}} */'
            skipped.append(run.run(f"{node} {INSERT}").rows.to_pylist()[0]["skipped"])

    threads = [threading.Thread(target=write, args=(each,)) for each in endpoints]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(skipped) == [False] * 3 + [True] * 3
    assert count(table) == 2 * 3 + 3

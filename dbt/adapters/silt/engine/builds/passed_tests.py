"""The facts of tests that passed and of views that were created: the versions that each of them has read.

    _tests/<digest>.json   the facts of the last execution of a test that passed, or of the last creation of a view

A test and a view change no table, so no commit can hold their facts. A document is written afterwards, and its
content stays true whatever happens later: if it is lost, or another process replaces it, the test runs again, and the
view is created again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.builds.decision import Built, Decision, LastBuild, decide
from dbt.adapters.silt.engine.builds.present import names_published_versions, present
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View, file_name, serialize_view
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, facts_hash, local_day
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table import json_fields

_FOLDER: Final = "_tests"
_RUN: Final = "run"
_OWN: Final = ""
"""The name of the table that a test writes: it writes none."""


@dataclass(frozen=True)
class PassedTest:
    """The last execution of a test that passed.

    Attributes:
        run_id: its logical run, if it has one.
    """

    facts: BuildFacts
    run_id: str | None = None

    @property
    def short(self) -> str:
        """The first table on which it passed, and the number of further tables."""
        read = self._read()
        more = f" and {len(read) - 1} more" if len(read) > 1 else ""
        return f"passed on {read[0]}{more}" if read else "passed on the same input"

    def _read(self) -> list[str]:
        return [f"{name}@v{state.version}" for name, state in self.facts.tables.items()]

    def __str__(self) -> str:
        read = self._read()
        run = f" (run {short_id(self.run_id)})" if self.run_id else ""
        return f"passed on {', '.join(read) or 'the same input'}{run}"


def of_view(build: Build, view: View) -> Build:
    """Returns the build of a view, whose code is also the document: a view that another writer has changed is another.

    The rows that it reads do not matter, as they are computed when the view is read.
    """
    document = serialize_view(replace(view, created_at=None)).decode()
    return replace(build, code=facts_hash([build.code, document]), tolerance_ms=sys.maxsize)


@dataclass(frozen=True)
class PassedTests:
    """The tests that have passed, and the views that were created, in a database of the warehouse."""

    catalog: Catalog
    database: str

    def find(self, owner: str) -> PassedTest | None:
        """Returns the last execution of a test that passed; None without a readable document.

        Raises:
            StorageError: if the storage failed.
        """
        try:
            body = foreign_json.loads(self._store.read(_path(owner), DOCUMENT_BYTES))
            json_fields.check_format(body, _path(owner))
            facts = BuildFacts.of_fields(body)
            run_id = body.get(_RUN)
        except ObjectMissing:
            return None
        except (ValueError, TypeError, AttributeError, UnsupportedFeatureError):
            return None
        if facts is None or facts.owner != owner:
            return None
        return PassedTest(facts, run_id if isinstance(run_id, str) else None)

    def note(self, passed: PassedTest) -> bool:
        """Records a test that passed, unless its result is not known to be the same for the same versions.

        Returns:
            Whether it was recorded: its facts contain nothing unknown, and no version of a branch.

        Raises:
            ReadOnlyStorageError, StorageError: if the document cannot be written.
        """
        facts = passed.facts
        if facts.unknown or None in facts.files.values() or not names_published_versions(self.catalog, facts):
            return False
        body = {"format": json_fields.FORMAT, **facts.commit_info()}
        if passed.run_id is not None:
            body[_RUN] = passed.run_id
        self._store.make_folder(_FOLDER)
        self._store.put(_path(facts.owner), json.dumps(body, ensure_ascii=False).encode())
        return True

    def decide(self, build: Build, passed: PassedTest | None, code: str, declared: Container[str] = ()) -> Decision:
        """Decides whether a test must run, by the present states of the inputs of its last execution that passed.

        Args:
            build: the test, as a build that writes no table.
            code, declared: as for `decide_now`.
        """
        if passed is None:
            return Built(("it has not passed before",))
        last = LastBuild(_OWN, 0, passed.facts, passed.run_id, changed_data=False)
        now = present(self.catalog, passed.facts, _OWN, code, declared=declared)
        return decide(build, last, replace(now, day=local_day(passed.facts.zone, build.at_ms)))

    @property
    def _store(self) -> Store:
        return self.catalog.store(self.database)


def _path(owner: str) -> str:
    return f"{_FOLDER}/{file_name(owner)}.json"

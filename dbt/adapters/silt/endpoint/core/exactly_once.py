"""Gives each writing statement of a client its unit of work, if the session names its logical run (`silt.run_id`)."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.units import ENDPOINT, RunContext, Unit, client_scope
from dbt.adapters.silt.runs.logical_run.run_id import LONGEST_RUN_ID

RUN_ID: Final = "silt.run_id"
"""The session's setting: the id of the logical run whose statements are applied once."""

_COMMENT: Final = re.compile(r"\s*/\*(.*?)\*/\s*|\s*--[^\n]*\n\s*", re.DOTALL)


@dataclass(frozen=True)
class WritingStatement:
    """A statement that changes a table.

    Attributes:
        text: the statement without the comments around it.
        comment: dbt's query comment, if it has one.
        node: the node of dbt that the comment names, if any.
    """

    text: str
    comment: str | None = None
    node: str | None = None

    @classmethod
    def of(cls, sql: str) -> WritingStatement:
        """Separates the text from the comments before and after it; dbt's query comment is JSON."""
        text, comment, node = sql.strip(), None, None
        while found := _COMMENT.match(text):
            comment, node = (comment, node) if comment else _of_dbt(found.group(1))
            text = text[found.end() :]
        if text.endswith("*/") and "/*" in text:
            text, _, last = text[:-2].rpartition("/*")
            comment, node = (comment, node) if comment else _of_dbt(last)
        return cls(text.strip(), comment, node)


def _of_dbt(comment: str | None) -> tuple[str | None, str | None]:
    try:
        found = json.loads(comment or "")
    except ValueError:
        return None, None
    node = found.get("node_id") if isinstance(found, dict) else None
    return (comment or "").strip(), node if isinstance(node, str) else None


def checked_run_id(given: str) -> str:
    """Returns the run id of a setting's value.

    Raises:
        InvalidSettingError: if it cannot be recorded.
    """
    run_id = given.strip("'\"")
    if not run_id.strip() or len(run_id) > LONGEST_RUN_ID:
        raise InvalidSettingError(
            f"`{RUN_ID}` must have 1 to {LONGEST_RUN_ID} characters, not {len(run_id)}",
            remedy="Set it to the id that your scheduler gives to the run and to its retries",
        )
    return run_id


@dataclass
class RunUnits:
    """The units of the statements of a session: each is named by its run, node and text, and by how often this session
    has already run that text successfully in that node.
    """

    target: str
    _done: Counter[str] = field(default_factory=Counter)

    def copied(self) -> RunUnits:
        """Returns the units of another session that continues from here."""
        return RunUnits(self.target, self._done.copy())

    def unit(self, run_id: str, statement: WritingStatement) -> Unit:
        """Returns the unit of the next statement."""
        project = (statement.node or "").split(".")[1:2] or [ENDPOINT]
        scope = client_scope(RunContext(project[0], self.target, run_id), statement.node)
        return scope.unit(statement.text, self._done[scope.key(statement.text)] + 1)

    def note_done(self, unit: Unit) -> None:
        """Notes that a statement succeeded; a failed statement that is sent again has the same unit."""
        self._done[unit.app_id.rpartition("/")[0]] += 1

    def commit_info(
        self, run_id: str | None, unit: Unit | None, written: WritingStatement, client: str
    ) -> dict[str, Any]:
        """Returns the fields of the commit's `commitInfo`.

        Args:
            run_id: the logical run of the session, if it has one.
            client: the client, for people.
        """
        facts = CommitFacts(
            target=self.target,
            run_id=run_id,
            app_id=None if unit is None else unit.app_id,
            node_id=written.node,
            query_comment=written.comment,
            client=client,
        )
        return facts.commit_info()

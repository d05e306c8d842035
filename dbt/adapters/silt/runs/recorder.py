"""Records the outcome of a statement: in the project's journal, in dbt's log, and for the text of a later error.

dbt's own records do not suffice: it drops the responses of hooks, of every microbatch model, and of a node that fails
after its commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.runs.committed_work import CommittedBatches, CommittedWork
from dbt.adapters.silt.runs.response import SiltResponse, journal_entry

if TYPE_CHECKING:
    from dbt.adapters.silt.records.commit_facts import CommitFacts
    from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry

logger = AdapterLogger("Silt")


class Recorder:
    """Records the outcomes of a dbt command's statements.

    Args:
        journal: the project's file `silt_commits.jsonl`.
    """

    def __init__(self, journal: CommitJournal) -> None:
        self._journal = journal
        self.batches = CommittedBatches()

    def record(self, response: SiltResponse, facts: CommitFacts, committed: CommittedWork) -> None:
        """Records a commit, or the earlier commit that made a unit of work unnecessary; ignores other responses.

        Args:
            committed: the commits of the thread's node so far; the response is added.
        """
        if not response.skipped and (response.table_version is None or not response.counts.attempts):
            return
        if facts.app_id is not None:
            committed.note(facts.node_id, response)
            if facts.batch_id is not None and facts.node_id is not None:
                self.batches.note(facts.node_id, response)
        self._write(journal_entry(response, facts))
        what = str(response) if response.skipped else f"committed {response.table}@{response}"
        logger.debug(f"{what[0].upper()}{what[1:]} ({_author(facts)})")

    def _write(self, entry: JournalEntry) -> None:
        """Appends to the journal; a failure is only a warning, because the commit has happened."""
        try:
            self._journal.append(entry)
        except OSError as error:
            logger.warning(
                f"{self._journal.path} cannot be written ({error}); the missing entries are in the logs of the tables"
            )


def _author(facts: CommitFacts) -> str:
    named = {"run": facts.run_id, "node": facts.node_id, "batch": facts.batch_id}
    known = [f"{what} {name}" for what, name in named.items() if name is not None]
    return ", ".join(known) or f"invocation {facts.invocation_id}"

"""Where the outcome of a statement is kept: in the project's file, in dbt's log, and for the text of a later error.

dbt's own records do not suffice: it drops the response of a node that fails after its commit, of every microbatch model
and of hooks.
"""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.runs.committed_work import CommittedBatches, CommittedWork
from dbt.adapters.silt.runs.response import SiltResponse, journal_entry

logger = AdapterLogger("Silt")


class Recorder:
    """Keeps the outcomes of one dbt command; each thread says what its own piece of work has done so far.

    Args:
        journal: the project's file.
    """

    def __init__(self, journal: CommitJournal) -> None:
        self._journal = journal
        self.batches = CommittedBatches()

    def record(self, response: SiltResponse, facts: CommitFacts, landed: CommittedWork) -> None:
        """Keep what a statement committed, or which earlier commit had done its work; nothing if there is neither."""
        if not response.skipped and (response.table_version is None or not response.attempts):
            return
        if facts.app_id is not None:
            landed.note(facts.node_id, response)
            if facts.batch_id is not None and facts.node_id is not None:
                self.batches.note(facts.node_id, response)
        self._write(journal_entry(response, facts))
        what = str(response) if response.skipped else f"committed {response.table}@{response}"
        logger.debug(f"{what[0].upper()}{what[1:]} ({_who(facts)})")

    def _write(self, entry: JournalEntry) -> None:
        """Add a line to the file; what it says has happened, whether or not the line can be written."""
        try:
            self._journal.append(entry)
        except OSError as error:
            logger.warning(
                f"{self._journal.path} cannot be written ({error}); the tables' logs have what is missing in it"
            )


def _who(facts: CommitFacts) -> str:
    named = {"run": facts.run_id, "node": facts.node_id, "batch": facts.batch_id}
    known = [f"{what} {name}" for what, name in named.items() if name is not None]
    return ", ".join(known) or f"invocation {facts.invocation_id}"

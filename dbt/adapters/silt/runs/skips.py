"""Reports units of work that are skipped because they are committed: at debug level, or as a warning if unexpected."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of
from dbt.adapters.silt.records.commit_facts import EarlierCommit, find_unit
from dbt.adapters.silt.records.units import is_full_refresh
from dbt.adapters.silt.runs.response import SiltResponse

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
    from dbt.adapters.silt.records.units import Unit

logger = AdapterLogger("Silt")


def skipped(log: DeltaLog, unit: Unit, hidden: Sequence[str] = ()) -> SiltResponse | None:
    """Returns the response of a unit of work that is already committed to the table, or None if it is not.

    Warns if the skip is unexpected.

    Args:
        hidden: changes since the unit's commit that a rerun should apply, but cannot, because the unit must not be
            repeated.
    """
    snapshot = log.snapshot()
    if not snapshot.holds(unit.txn):
        return None
    earlier = find_unit(log, unit.app_id)
    version, emptied_at = (earlier.version, earlier.emptied_at) if earlier else (None, None)
    outcome = Outcome("SKIP", log.name, version, skipped=True, emptied_at=emptied_at)
    response = SiltResponse.of(outcome, unit)
    if hidden:
        response.changed_since = ", ".join(hidden)
        _warn_of_hidden(str(response), hidden, _remedy(log, unit))
    else:
        _warn(str(response), unit, snapshot.transaction_version(unit.app_id), earlier)
    return response


def superseded(log: DeltaLog, unit: Unit, own_write: str) -> SiltResponse:
    """Warns of a statement before its node's own write, which is committed already, and returns its response."""
    found = find_unit(log, own_write)
    version = None if found is None else found.version
    commit = log.name if version is None else f"{log.name}@v{version}"
    response = SiltResponse.of(Outcome("SKIP", log.name, version, skipped=True), unit)
    logger.warning(
        f"skipped: a statement on {log.name} before the node's own write, which run {short_id(unit.run_id)} has "
        f"already applied as {commit}; to do both again, use a new run id"
    )
    return response


def _warn_of_hidden(response: str, hidden: Sequence[str], remedy: str) -> None:
    logger.warning(
        f"{response}; since then {', '.join(hidden)}, but repeating this model's write may apply rows twice or "
        f"miss rows. To apply the change, {remedy}"
    )


def _remedy(log: DeltaLog, unit: Unit) -> str:
    if branch_of(log) is not None:
        return "type the same command again when the run is held: it then builds the model from the published tables"
    return (
        f"undo the run with `silt rollback {shlex.quote(short_id(unit.run_id))}` (with `--drop-created` if the run "
        "created the table), then type the same command again"
    )


def _warn(response: str, unit: Unit, recorded: int | None, earlier: EarlierCommit | None) -> None:
    """Warns if a skip is unexpected: the node has changed, the run was a full refresh, or the table was emptied."""
    remedy = "to build it again, use a new run id"
    was = earlier.facts.node_checksum if earlier else None
    if recorded is not None and is_full_refresh(recorded) and not unit.is_full_refresh:
        logger.warning(f"{response}; that run was a full refresh; {remedy}")
    elif was is not None and unit.checksum is not None and was != unit.checksum:
        logger.warning(f"{response}; the node was changed since; {remedy}")
    elif earlier is not None and earlier.emptied_at is not None:
        logger.warning(f"{response}; {remedy}")
    else:
        logger.debug(response)

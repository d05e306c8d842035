"""Adds the unfinished nodes to dbt's results after Ctrl-C.

`dbt retry` repeats the nodes that failed or were skipped according to `run_results.json`. If `--fail-fast` stops a run,
dbt enters the remaining nodes as skipped; after Ctrl-C it omits them, and a retry would succeed without them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dbt.adapters.silt.records.command_result import RESULTS_FILE
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.dbt_command import retry_line


def enter_unfinished(folder: Path, invocation_id: str, selected: Iterable[str]) -> bool:
    """Enters the nodes without a result as skipped.

    Args:
        folder: dbt's target folder.
        invocation_id: the interrupted command.
        selected: the unique ids of the nodes that it was to run.

    Returns:
        Whether dbt has written the results of that command, so that they are complete now.
    """
    path = folder / RESULTS_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    if document["metadata"]["invocation_id"] != invocation_id:
        return False
    known = {result["unique_id"] for result in document["results"]}
    document["results"] += [_skipped(unique_id) for unique_id in selected if unique_id not in known]
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(document), encoding="utf-8")
    os.replace(temporary, path)
    return True


def advice(entry: RunEntry, has_results: bool, directory: str, reason: str) -> str:
    """Returns the last line of an interrupted run, below dbt's traceback: the command to type next.

    Args:
        has_results: whether `dbt retry` knows the remaining nodes.
        directory: the folder in which the command was typed.
        reason: why it ended, as the begin of a sentence.
    """
    if has_results:
        how = f"`{retry_line(entry.command)}` runs the rest"
    else:
        how = f"`{entry.continuing_command(directory)}` continues it"
    return f"{reason}: committed work is kept, and {how}."


def _skipped(unique_id: str) -> dict[str, Any]:
    return {
        "status": "skipped",
        "timing": [],
        "thread_id": "",
        "execution_time": 0.0,
        "adapter_response": {},
        "message": "Skipped because the run was interrupted",
        "failures": None,
        "unique_id": unique_id,
        "compiled": False,
        "compiled_code": None,
        "relation_name": None,
        "batch_results": None,
    }

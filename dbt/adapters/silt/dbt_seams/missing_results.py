"""Explains `dbt retry` if no run has left results: dbt refuses before it creates an adapter, without a remedy."""

from __future__ import annotations

from pathlib import Path

import click
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_manager_client import add_callback_to_manager

from dbt.adapters.silt.dbt_seams.dbt_command import RETRY
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.records.command_result import RESULTS_FILE
from dbt.adapters.silt.records.run_registry import RunRegistry

logger = AdapterLogger("Silt")


def explain_missing_results() -> None:
    """Logs the command that continues the last run, if this is `dbt retry` and it fails because results are missing.

    To be called when dbt has read the profile: dbt calls nothing else of an adapter before it refuses.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.info_name == RETRY:
        add_callback_to_manager(_on_event)


def continuing_advice(target: Path, directory: str) -> str | None:
    """Returns the remedy if a project has no results because its last run was stopped, or else None.

    Args:
        target: dbt's target folder.
        directory: the folder in which the command is typed.

    Raises:
        InvalidSettingError: if the registry of runs is damaged.
        StorageError: if it cannot be read.
    """
    begun = [each for each in RunRegistry(target).entries() if each.began]
    last = max(begun, key=lambda each: each.started, default=None)
    if last is None or last.finished or (target / RESULTS_FILE).exists():
        return None
    return f"Run {last.run_id}, started at {last.started_at}, {last.ending}. {last.remedy(directory)}"


def _on_event(event: EventMsg) -> None:
    if event.info.name != "MainEncounteredError":
        return
    command = click.get_current_context().obj
    config = command.get("runtime_config")
    if config is not None and command["flags"].STATE is None:
        try:
            advice = continuing_advice(Path(config.project_target_path), str(Path.cwd()))
        except SiltError as error:
            advice = str(error)
        if advice is not None:
            logger.error(advice)

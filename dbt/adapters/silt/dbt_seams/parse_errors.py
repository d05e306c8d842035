"""Explains errors that dbt reports before it creates an adapter: refused files, and missing results of `dbt retry`.

The parser refuses a mistake without the name of the file: a config's value, or an encoding. dbt checks the values of
configs after it has merged them, and reads seeds as text before it knows their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_manager_client import add_callback_to_manager, get_event_manager

from dbt.adapters.silt.dbt_seams.dbt_command import RETRY
from dbt.adapters.silt.dbt_seams.interruption import hide_stack_trace
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.records.command_result import RESULTS_FILE
from dbt.adapters.silt.records.run_registry import RunRegistry

logger = AdapterLogger("Silt")

_REFUSED: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"at path \['(?P<key>\w+)'\]: '?(?P<value>.*?)'? (?:is not|does not)",
        r"Field \"(?P<key>\w+)\" of type .* has invalid value '?(?P<value>.*?)'?$",
        r"Invalid value for '(?P<key>\w+)': (?P<value>.*?)\. Expected",
        r"at path \[\]: (?P<key>Severity) must be .* Got '(?P<value>.*)'",
    )
)
"""dbt's messages about an unusable value of a config; they do not name the file."""

_VALUES: Final[Mapping[str, str]] = {
    "check_cols": "`all`, or a list of columns: `[name, amount]`",
    "full_refresh": "`true` or `false`, without quotes",
    "on_schema_change": "`ignore`, `fail`, `append_new_columns` or `sync_all_columns`",
    "persist_docs": "a mapping: `{relation: true, columns: true}`",
    "severity": "`error` or `warn`",
}
_TEXTS: Final = (".sql", ".py", ".yml", ".yaml")
_READ: Final = (*_TEXTS, ".csv", ".md")
_LARGEST: Final = 1 << 20
"""Bytes of the largest file that is searched: dbt itself does not read larger seeds as text."""
_SHOWN: Final = 5


def explain_parse_errors() -> None:
    """Logs where the mistake is, if dbt ends the current command with such an error.

    To be called when dbt has read the profile: dbt may fail before it creates an adapter.
    """
    callbacks = get_event_manager().callbacks
    if click.get_current_context(silent=True) is not None and _on_event not in callbacks:
        callbacks.append(_on_event)


def parse_advice(said: str, files: Mapping[str, Path]) -> str | None:
    """Returns the places of the mistake that an error of dbt's parser is about, and its remedy, if they are found.

    Args:
        said: the message of the error.
        files: the project's files by their paths as a user writes them.
    """
    if "codec can't decode" in said:
        return _of_encoding(files)
    found = next((match for each in _REFUSED if (match := each.search(said))), None)
    if found is None or any(path in said for path in files):
        return None
    key, value = found["key"].lower(), found["value"]
    places = list(_places(key, files))
    exact = [place for place, line in places if value.lower() in line.lower()] or [place for place, _ in places]
    if not exact:
        return None
    more = f" and {len(exact) - _SHOWN} more" if len(exact) > _SHOWN else ""
    remedy = f": it must be {_VALUES[key]}" if key in _VALUES else ""
    return f"`{key}` is set in {'; '.join(exact[:_SHOWN])}{more}{remedy}"


def _of_encoding(files: Mapping[str, Path]) -> str | None:
    for name, path in files.items():
        content = path.read_bytes()
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            return (
                f"{name}, line {line}, is not in UTF-8: save the file as UTF-8, or "
                f"convert it, a file of Excel with `iconv -f WINDOWS-1252 -t UTF-8 {name} > new.csv`"
            )
    return None


def _places(key: str, files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yields the lines that name a config, each with its place."""
    word = re.compile(rf"\b{re.escape(key)}\b", re.IGNORECASE)
    for name, path in files.items():
        if path.suffix in _TEXTS:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            yield from ((f"{name}, line {at}", line) for at, line in enumerate(lines, 1) if word.search(line))


def _files_of(config: Any) -> dict[str, Path]:
    """Returns the small files that dbt reads in a project, by their paths in it."""
    root = Path(config.project_root)
    folders = sorted({root / each for each in config.all_source_paths})
    paths = [root / "dbt_project.yml", *(path for each in folders for path in sorted(each.rglob("*")))]
    read = (path for path in paths if path.suffix in _READ and path.is_file() and path.stat().st_size <= _LARGEST)
    return {str(path.relative_to(root)): path for path in read}


def _on_event(event: EventMsg) -> None:
    if event.info.name != "MainEncounteredError":
        return
    command = click.get_current_context().obj or {}
    config = command.get("runtime_config")
    try:
        advice = None if config is None else parse_advice(event.data.exc, _files_of(config))
    except OSError:  # a file cannot be read: the advice only adds to dbt's own message
        return
    if advice is not None:
        hide_stack_trace()
        logger.error(advice)


def explain_missing_results() -> None:
    """Logs the command that continues the last run, if this is `dbt retry` and it fails because results are missing.

    To be called when dbt has read the profile: dbt calls nothing else of an adapter before it refuses.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.info_name == RETRY:
        add_callback_to_manager(_explain_retry)


def _continuing_advice(target: Path, directory: str) -> str | None:
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
    return f"Run {short_id(last.run_id)}, started at {last.started_at}, {last.ending}. {last.remedy(directory)}"


def _explain_retry(event: EventMsg) -> None:
    if event.info.name != "MainEncounteredError":
        return
    command = click.get_current_context().obj
    config = command.get("runtime_config")
    if config is not None and command["flags"].STATE is None:
        try:
            advice = _continuing_advice(Path(config.project_target_path), str(Path.cwd()))
        except SiltError as error:
            advice = str(error)
        if advice is not None:
            logger.error(advice)

"""Chooses the run id of a dbt command, by which a rerun recognises the units of work that are done.

The id is the first of these that there is:

1. the variable `silt_run_id` (`--vars`), which dbt records and `dbt retry` repeats by itself;
2. for `dbt retry`, the id of the run that is retried (see `retry`);
3. the profile's field `run_id`;
4. with the profile's field `resume`, the id of the same command's last run, if it did not finish within that time;
5. dbt's invocation id: no unit of work is done yet.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.records.run_registry import RUN_ID_VARIABLE, RunEntry

LONGEST_RUN_ID = 500
"""Characters: the id is in every commit, and in every checkpoint as long as its units of work are remembered."""


class Origin(enum.Enum):
    """The source of a run id."""

    VARIABLE = f"the variable {RUN_ID_VARIABLE}"
    RETRY = "the run that is retried"
    PROFILE = "the profile's run_id"
    RESUME = "a run that did not finish"
    INVOCATION = "dbt's invocation id"


@dataclass(frozen=True)
class LogicalRun:
    """A run id, where it came from, and for `Origin.RESUME` the run that is continued."""

    run_id: str
    origin: Origin
    continued: RunEntry | None = None


@dataclass(frozen=True)
class RunSources:
    """The candidates for a run id, gathered before one is chosen.

    Attributes:
        invocation_id: dbt's id of this command.
        variables: this command's `--vars`.
        retried: for `dbt retry`, finds the id of the run that is retried; None for any other command.
        profile_run_id: the profile's `run_id`.
        unfinished: the run that the profile's `resume` continues.
    """

    invocation_id: str
    variables: Mapping[str, Any]
    retried: Callable[[], str] | None = None
    profile_run_id: str | None = None
    unfinished: RunEntry | None = None


def choose_run(sources: RunSources) -> LogicalRun:
    """The logical run of a dbt command.

    Raises:
        InvalidSettingError: the given run id is invalid, or that of the run which `dbt retry` repeats is not found.
    """
    variable = run_id_text(sources.variables.get(RUN_ID_VARIABLE), f"the variable `{RUN_ID_VARIABLE}`")
    if variable:
        return LogicalRun(variable, Origin.VARIABLE)
    if sources.retried is not None:
        return LogicalRun(sources.retried(), Origin.RETRY)
    profile = run_id_text(sources.profile_run_id, "the profile's `run_id`")
    if profile:
        return LogicalRun(profile, Origin.PROFILE)
    if sources.unfinished:
        return LogicalRun(sources.unfinished.run_id, Origin.RESUME, sources.unfinished)
    return LogicalRun(sources.invocation_id, Origin.INVOCATION)


def resumable(entries: Sequence[RunEntry], own: RunEntry, resume: timedelta) -> RunEntry | None:
    """The last run of the same command, if it started within `resume`, did not finish, and no longer runs.

    Another command, other variables or another target ask for something else: under the id of the unfinished run, what
    that one committed would be skipped.

    Args:
        entries: the runs so far.
        own: this command, with any run id.
        resume: how long before `own` the run may have started.
    """
    others = [each for each in entries if each.invocation_id != own.invocation_id and each.work == own.work]
    if not others:
        return None
    newest = max(others, key=lambda each: each.started)
    if newest.finished or newest.running or own.started - newest.started > resume:
        return None
    return newest


def run_id_text(value: Any, source: str) -> str:
    """A run id as text; empty for none, which an unset environment variable gives too.

    Args:
        value: what was given, as YAML reads it.
        source: its source, for the error.

    Raises:
        InvalidSettingError: it is neither text nor a number, too long, or holds characters that cannot be seen.
    """
    if isinstance(value, (date, datetime)):
        value = value.isoformat()
    if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
        raise InvalidSettingError(
            f"{source} is a text or a number, not {value!r}", remedy="Give a text that names the run, such as a date"
        )
    text = "" if value is None else str(value).strip()
    if len(text) > LONGEST_RUN_ID:
        raise InvalidSettingError(
            f"{source} has {len(text):,} characters, and at most {LONGEST_RUN_ID} are taken", remedy="Give a shorter id"
        )
    if not text.isprintable():
        raise InvalidSettingError(
            f"{source} holds characters that cannot be seen: {text!r}", remedy="Give an id without them"
        )
    return text


_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"\s*(\d+)\s*(second|minute|hour|day)s?\s*", re.IGNORECASE)


def parse_duration(text: str) -> timedelta:
    """The length of time that "90 minutes", "2 hours" or "1 day" means.

    Raises:
        ValidationError: the text is no such length of time.
    """
    found = _DURATION.fullmatch(str(text))
    if not found:
        raise ValidationError(f"`resume` is a length of time such as `2 hours` or `30 minutes`, not `{text}`")
    try:
        return timedelta(seconds=int(found[1]) * _UNITS[found[2].lower()])
    except OverflowError as error:
        raise ValidationError(f"`resume` is too long: `{text}`") from error

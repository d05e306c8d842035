"""Chooses the run id of a dbt command, by which a rerun recognises completed units of work.

The id is the first of these that exists:

1. the variable `silt_run_id` (`--vars`), which dbt records and `dbt retry` repeats by itself; it may be the beginning
   of the id of a run of the project;
2. for `dbt retry`, the id of the run that is retried (see `retry`);
3. the profile's field `run_id`;
4. the id of the last run of the same command, if it did not finish and is to be continued (see `resume`);
5. dbt's invocation id: no unit of work is completed yet.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.printable import SHORT_ID, is_made_by_dbt
from dbt.adapters.silt.records.run_registry import RUN_ID_VARIABLE, RunEntry
from dbt.adapters.silt.runs.logical_run import publish_mode

VARIABLES: Final = (RUN_ID_VARIABLE, publish_mode.VARIABLE, "silt_reuse")
"""The variables (`--vars`) that this package reads."""

LONGEST_RUN_ID = 500
"""In characters: the id is in every commit, and in every checkpoint as long as its units of work are remembered."""


class Origin(enum.Enum):
    """The source of a run id."""

    VARIABLE = f"the variable {RUN_ID_VARIABLE}"
    RETRY = "the run that is retried"
    PROFILE = "the profile's run_id"
    RESUME = "a run that did not finish"
    INVOCATION = "dbt's invocation id"


@dataclass(frozen=True)
class LogicalRun:
    """A run id, its origin, and for `Origin.RESUME` the run that is continued."""

    run_id: str
    origin: Origin
    continued: RunEntry | None = None


@dataclass(frozen=True)
class RunSources:
    """The candidates for a run id.

    Attributes:
        invocation_id: dbt's id of this command.
        variables: this command's `--vars`.
        retried: for `dbt retry`, finds the id of the run that is retried; None for any other command.
        profile_run_id: the profile's `run_id`.
        unfinished: the run that this command continues.
        known: the ids of the project's runs, of which the variable may be the beginning.
    """

    invocation_id: str
    variables: Mapping[str, Any]
    retried: Callable[[], str] | None = None
    profile_run_id: str | None = None
    unfinished: RunEntry | None = None
    known: Sequence[str] = ()


def choose_run(sources: RunSources) -> LogicalRun:
    """Returns the logical run of a dbt command.

    Raises:
        InvalidSettingError: if the given run id is invalid, the id of the run that `dbt retry` repeats is not found, or
            the name of a variable is misspelt.
    """
    _check_names(sources.variables)
    variable = run_id_text(sources.variables.get(RUN_ID_VARIABLE), f"the variable `{RUN_ID_VARIABLE}`")
    if variable:
        return LogicalRun(_whole(variable, sources.known), Origin.VARIABLE)
    if sources.retried is not None:
        return LogicalRun(sources.retried(), Origin.RETRY)
    profile = run_id_text(sources.profile_run_id, "the profile's `run_id`")
    if profile:
        return LogicalRun(profile, Origin.PROFILE)
    if sources.unfinished:
        return LogicalRun(sources.unfinished.run_id, Origin.RESUME, sources.unfinished)
    return LogicalRun(sources.invocation_id, Origin.INVOCATION)


def _whole(given: str, known: Sequence[str]) -> str:
    """Returns the id that dbt has made of which the user has copied the displayed beginning, or else the given id.

    The beginning of an id that a person has chosen is another id: "2026-03-01" does not mean "2026-03-01-evening".

    Raises:
        InvalidSettingError: if several ids begin like this.
    """
    if given in known or len(given) < SHORT_ID:
        return given
    found = sorted({each for each in known if each.startswith(given) and is_made_by_dbt(each)})
    if len(found) > 1:
        raise InvalidSettingError(
            f"the ids of {len(found)} runs begin with `{given}`: {', '.join(found)}", remedy="Type more of the id"
        )
    return found[0] if found else given


def _check_names(variables: Iterable[str]) -> None:
    """Raises InvalidSettingError for a name that is only similar to the name of a variable of this package."""
    for name in variables:
        similar = difflib.get_close_matches(str(name).lower().replace("-", "_"), VARIABLES, n=1, cutoff=0.8)
        if similar and name not in VARIABLES:
            raise InvalidSettingError(
                f"the variable `{name}` has no effect", remedy=f"Did you mean `{similar[0]}`? If not, rename it"
            )


def run_id_text(value: Any, source: str) -> str:
    """Returns a run id as text; empty if it is missing, or comes from an unset environment variable.

    Args:
        value: the given value, as YAML reads it.
        source: its source, for the error.

    Raises:
        InvalidSettingError: if it is neither text nor a number, too long, or contains invisible characters.
    """
    if isinstance(value, (date, datetime)):
        value = value.isoformat()
    if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
        raise InvalidSettingError(
            f"{source} must be a string or a number, not {value!r}",
            remedy="Use a string that names the run, such as a date",
        )
    text = "" if value is None else str(value).strip()
    if len(text) > LONGEST_RUN_ID:
        raise InvalidSettingError(
            f"{source} has {len(text):,} characters, but at most {LONGEST_RUN_ID} are allowed",
            remedy="Use a shorter id",
        )
    if not text.isprintable():
        raise InvalidSettingError(f"{source} contains invisible characters: {text!r}", remedy="Use an id without them")
    return text

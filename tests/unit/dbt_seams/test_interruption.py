"""The part of an error that dbt prints when the error ends a command."""

from __future__ import annotations

import io
import traceback
from collections.abc import Iterator

import pytest
from dbt.events.types import MainEncounteredError, MainStackTrace
from dbt_common.events.base_types import EventLevel
from dbt_common.events.event_manager_client import cleanup_event_logger, get_event_manager
from dbt_common.events.functions import fire_event
from dbt_common.events.logger import LoggerConfig

from dbt.adapters import silt
from dbt.adapters.silt.impl import Plugin  # its first import writes lines to dbt's loggers


@pytest.fixture
def streams() -> Iterator[dict[str, io.StringIO]]:
    """The output of dbt's loggers for the screen and for the log file."""
    cleanup_event_logger()
    found = {name: io.StringIO() for name in ("stdout_log", "file_log")}
    for name, stream in found.items():
        get_event_manager().add_logger(LoggerConfig(name=name, output_stream=stream, level=EventLevel.DEBUG))
    assert silt.Plugin is Plugin  # dbt reads it before anything else of the adapter
    yield found
    cleanup_event_logger()


def end_by(error: BaseException) -> None:
    """Fires dbt's events for a command that an error ends."""
    try:
        raise error
    except BaseException as ended:
        fire_event(MainEncounteredError(exc=str(ended)))
        fire_event(MainStackTrace(stack_trace=traceback.format_exc()))


def test_the_traceback_of_a_ctrl_c_is_only_in_the_log_file(streams: dict[str, io.StringIO]) -> None:
    end_by(KeyboardInterrupt())
    assert streams["stdout_log"].getvalue() == ""
    assert "KeyboardInterrupt" in streams["file_log"].getvalue()


def test_the_traceback_of_any_other_error_is_on_the_screen(streams: dict[str, io.StringIO]) -> None:
    end_by(ValueError("a bug"))
    assert "ValueError: a bug" in streams["stdout_log"].getvalue()

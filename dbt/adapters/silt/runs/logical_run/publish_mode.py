"""The values of the profile's `publish`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError

VARIABLE: Final = "silt_publish"
"""The variable (`--vars`) that takes precedence over the profile's `publish`."""


class PublishMode(enum.Enum):
    """When the changes of a dbt command become visible."""

    AT_ONCE = "at_once"
    AFTER_RUN = "after_run"
    AFTER_TESTS = "after_tests"
    ON_REQUEST = "on_request"

    @classmethod
    def of(cls, text: object, source: str) -> PublishMode:
        """Parses a value.

        Args:
            source: its source, for the error.

        Raises:
            InvalidSettingError: if it is not a value of `publish`.
        """
        try:
            return cls(text)
        except ValueError:
            known = ", ".join(f"`{each.value}`" for each in cls)
            raise InvalidSettingError(f"{source} must be one of {known}, not `{text}`") from None


def publish_mode(variables: Mapping[str, Any], publish: str) -> PublishMode:
    """Returns when the changes of a command become visible, by its variables and its profile.

    Args:
        publish: the field of the profile.

    Raises:
        InvalidSettingError: if a value is not a value of `publish`.
    """
    given = variables.get(VARIABLE)
    if given is None:
        return PublishMode.of(publish, "`publish` in the profile")
    return PublishMode.of(given, f"the variable `{VARIABLE}`")

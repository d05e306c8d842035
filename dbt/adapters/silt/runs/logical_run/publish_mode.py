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


def publish_mode(variables: Mapping[str, Any], publish: str, catalog: str | None) -> PublishMode:
    """Returns when the changes of a command become visible, by its variables and its profile.

    Args:
        publish, catalog: fields of the profile.

    Raises:
        InvalidSettingError: if a value is not a value of `publish`, or the tables are registered in a metastore.
    """
    given = variables.get(VARIABLE)
    mode = (
        PublishMode.of(publish, "`publish` in the profile")
        if given is None
        else PublishMode.of(given, f"the variable `{VARIABLE}`")
    )
    if mode is not PublishMode.AT_ONCE and catalog is not None:
        raise InvalidSettingError(
            f"`publish: {mode.value}` cannot be used with `catalog: {catalog}`: the tables would be "
            "registered before they are visible",
            remedy="Use `publish: at_once` for this target",
        )
    return mode

"""Shows packages and projects another `target.type` than the adapter's: the one that the profile names."""

from __future__ import annotations

from typing import Any

from dbt.config.profile import Profile

_of_dbt = Profile.to_target_dict


def show_target_type() -> None:
    """Lets `target.type` be the field `target_type` of the profile's credentials, where they have it.

    To be called when dbt has read the profile: it renders `dbt_project.yml` next. dbt takes `target.type` from where it
    also finds the adapter and its macros, so a profile alone cannot have two.
    """
    Profile.to_target_dict = _to_target_dict  # type: ignore[method-assign, assignment]


def _to_target_dict(profile: Profile) -> dict[str, Any]:
    shown = getattr(profile.credentials, "target_type", None)
    return {**_of_dbt(profile), **({"type": shown} if shown else {})}

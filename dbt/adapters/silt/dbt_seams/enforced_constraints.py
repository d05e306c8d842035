"""Lets `enforced: true` of a constraint reach the adapter: dbt's classes for constraints have no such field.

dbt reads a constraint of a YAML file by `from_dict`, which ignores unknown fields. The word is moved into `expression`,
the field for the words at the constraint's end, so it is part of the manifest and of the cache of parsed files.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from dbt_common.contracts.constraints import ColumnLevelConstraint, ModelLevelConstraint

_KEYS: Final = ("primary_key", "unique", "foreign_key")
_READ: Final = "from_dict"


def keep_enforced() -> None:
    """Changes how dbt reads constraints, once in a process. To be called before dbt parses the project."""
    for kind in (ColumnLevelConstraint, ModelLevelConstraint):
        if not hasattr(kind.from_dict, "__wrapped__"):
            kind.from_dict({"type": "check"})  # the first call compiles the method, and replaces it
            setattr(kind, _READ, staticmethod(_reading(kind.from_dict)))


def _reading(read: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(read)
    def with_word(given: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        return read(with_enforced(given), *args, **kwargs)

    return with_word


def with_enforced(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a constraint of a YAML file with the field `enforced` of a key as the end of its `expression`."""
    found = dict(given)
    enforced = found.pop("enforced", None)
    if enforced is None or str(found.get("type")) not in _KEYS:
        return found
    word = "enforced" if str(enforced).lower() == "true" else "not enforced"
    return {**found, "expression": " ".join(filter(None, (found.get("expression"), word)))}

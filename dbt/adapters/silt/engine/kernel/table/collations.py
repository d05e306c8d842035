"""Names the types of strings that compare by a collation: `string collate UNICODE_CI`.

In the log such a column is a `string`. The metadata of its field names the collation of each string in it, but not in
structs inside it, by the string's path: `{"name.element": "icu.UNICODE_CI"}`. In a schema that was read, the collation
is part of the type instead, as Spark's SQL spells it: two types are equal only if their values compare alike, and code
that only knows the type `string` does not compare these values by their bytes.

Source: the Delta proposal "Collated String Type", and the metadata `__COLLATIONS` in Spark's own schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError

KEY: Final = "__COLLATIONS"
FEATURE: Final = "collations"
STRING: Final = "string"

_PREFIX: Final = f"{STRING} collate "
_COLLATED: Final = re.compile(f"{_PREFIX}([A-Za-z][A-Za-z0-9_]*)")
"""The name of a type. It becomes a part of SQL, so a log cannot put anything else into it."""
_BY_BYTES: Final = "UTF8_BINARY"
_OF_SPARK: Final = "UTF8_"
_PROVIDERS: Final = ("spark", "icu")


def collation(type_name: str) -> str | None:
    """Returns the collation of a type, or None if its values compare without one."""
    found = _COLLATED.fullmatch(type_name)
    return None if found is None else found[1]


def has_collation(type_names: Iterable[str]) -> bool:
    """Returns whether one of the types has a collation."""
    return any(collation(name) is not None for name in type_names)


def without(type_name: str) -> str:
    """Returns the name of the type in which the log and the data files hold the values."""
    return type_name if collation(type_name) is None else STRING


def given(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Returns the types of strings with a collation by the metadata of their field, by the strings' paths.

    Raises:
        UnsupportedFeatureError: if a collation is of another provider than Spark's.
        ValueError: if the metadata has another form.
    """
    identifiers = metadata.get(KEY) or {}
    if not isinstance(identifiers, dict) or not all(isinstance(each, str) for each in identifiers.values()):
        raise ValueError(f"{KEY} {identifiers!r}")
    names = {path: _name(identifier) for path, identifier in identifiers.items()}
    return {path: f"{_PREFIX}{name}" for path, name in names.items() if name != _BY_BYTES}


def identifier(name: str) -> str:
    """Returns the log's identifier of a collation, which begins with the name of its provider."""
    return f"{_PROVIDERS[not name.startswith(_OF_SPARK)]}.{name}"


def _name(identifier: str) -> str:
    provider, _, versioned = identifier.partition(".")
    name = versioned.partition(".")[0]  # the version only concerns statistics
    if provider.lower() not in _PROVIDERS or collation(f"{_PREFIX}{name}") is None:
        raise UnsupportedFeatureError(
            f"the table has the collation {identifier}, which Spark does not have",
            remedy="Change the column to `string`, or to a collation of Spark, with the engine that created the table",
            details={"features": (FEATURE,)},
        )
    return name

"""Says why a command does not use a kept Spark that runs for its folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import leases, listing, private_files

_PARTS: Final = "parts.json"
_OF_ENVIRONMENT: Final = "environment"
_WITHOUT_KEEP_ALIVE: Final = "this target has no `keep_alive`"


def note_parts(folder: Path, settings: Mapping[str, object], inherited: Mapping[str, object]) -> None:
    """Records the settings and the environment of a Spark in its folder, as hashes, which reveal no value.

    Raises:
        KeptSparkError: if the file cannot be written.
    """
    private_files.write(folder / _PARTS, json.dumps(_parts(settings, inherited)).encode())


def reason(
    base: Path, own: str, settings: Mapping[str, object], inherited: Mapping[str, object], is_kept: bool
) -> str | None:
    """Returns why a command starts a Spark next to a kept Spark of its folder, if such a Spark runs.

    Args:
        base: the folder of all kept Sparks.
        own: the name of the Spark that the command uses.
        is_kept: whether the command's own Spark is a kept Spark.
    """
    try:
        others = {each.name: each for each in listing.running(base) if each.record.folder == os.getcwd()}
        if not others or (is_kept and own in others):
            return None
        parts = _parts(settings, inherited)
        differing = {name: list(_differing(spark.folder, parts)) for name, spark in others.items()}
    except (KeptSparkError, OSError):  # a command that needs the folder reports it
        return None
    name = min(differing, key=lambda each: len(differing[each]))
    reasons = [*([] if is_kept else [_WITHOUT_KEEP_ALIVE]), *_joined(differing[name])]
    return f"Another Spark starts next to the kept Spark {name} of this folder: {'; '.join(reasons)}"


def _joined(names: list[str]) -> Iterator[str]:
    if names:
        yield f"it has another value of {', '.join(names)}"


def _differing(folder: Path, parts: Mapping[str, str]) -> Iterator[str]:
    theirs = leases.read_json(folder / _PARTS)
    if theirs is None:
        yield "the version of this package"
        return
    yield from (name for name in sorted({*parts, *theirs}) if parts.get(name) != theirs.get(name))


def _parts(settings: Mapping[str, object], inherited: Mapping[str, object]) -> dict[str, str]:
    """Returns a hash of each part of the settings and the environment, by the name under which a user knows it."""
    return {name: _hash(name, value) for name, value in _named({**settings, **inherited})}


def _named(parts: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in parts.items():
        if not isinstance(value, Mapping):
            yield _LABELS.get(name, f"the {name}"), value
            continue
        for each in value:
            yield f"the variable {each}" if name == _OF_ENVIRONMENT else f"`{name}: {each}`", value[each]


_LABELS: Final = {
    "master": "`master`",
    "java": "Java",
    "pyspark": "PySpark",
    "python": "Python",
    "package": "the version of this package",
}


def _hash(name: str, value: object) -> str:
    return hashlib.sha256(json.dumps([name, value], sort_keys=True, default=str).encode()).hexdigest()[:16]

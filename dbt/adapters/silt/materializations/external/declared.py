"""The files that a project declares: files of its sources, and files that its `external` models write.

The views of the project may read them; a stored view of another origin may not read any other files.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dbt_common.exceptions import DbtBaseException

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.materializations.external.target import resolve_location


@dataclass(frozen=True)
class DeclaredFiles(Container[str]):
    """The locations that a project declares, as its views spell them; computed at the first use.

    Attributes:
        find: returns the locations that sources and models configure.
        codes: returns the code of the project's models, which declares each location that it quotes.
    """

    find: Callable[[], Iterable[str]]
    codes: Callable[[], Iterable[str]] = tuple

    def __contains__(self, location: object) -> bool:
        if location in self._found:
            return True
        written = [f"{quote}{location}{quote}" for quote in ("'", '"', "`")]
        return any(each in code for code in self.codes() for each in written)

    @cached_property
    def _found(self) -> frozenset[str]:
        return frozenset(self.find())


def of_artifact(path: Path, project_root: str) -> Iterator[str]:
    """Yields the locations that the `manifest.json` of dbt's last command declares; nothing if it cannot be read."""
    try:
        manifest = json.loads(path.read_bytes())
        sources, nodes = manifest["sources"].values(), manifest["nodes"].values()
        texts = [str(each["relation_name"]) for each in sources]
        configs = [each["config"] for each in nodes]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for text in texts:
        with contextlib.suppress(SiltError):
            for reference in table_references(f"select * from {text}"):
                if reference.files is not None:
                    yield reference.files.path
                elif reference.is_path:
                    yield reference.parts[1]
    for config in configs:
        if config.get("materialized") == "external":
            with contextlib.suppress(DbtBaseException):
                yield resolve_location(str(config.get("location") or ""), project_root)

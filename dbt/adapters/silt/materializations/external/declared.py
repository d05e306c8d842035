"""The files that a project declares: files of its sources, and files that its `external` models write.

The views of the project may read them; a stored view of another origin may not read any other files.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from dbt_common.exceptions import DbtBaseException

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.table_functions import named_files
from dbt.adapters.silt.materializations.external.target import resolve_location

_BY_FORMAT: Final = re.compile(r"\b\w+\s*\.\s*`((?:[^`]|``)+)`")
_JINJA: Final = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_STRING: Final = re.compile(r"""(['"])(.*?)\1""", re.DOTALL)
_IN_A_FOLDER: Final = re.compile(r"[^/]/[^/]|^/[^/]")
"""A part of each string that is a path; `'/'` between parts of a path is none."""


@dataclass(frozen=True)
class DeclaredFiles(Container[str]):
    """The locations that a project declares, as its views spell them; computed at the first use.

    Attributes:
        find: returns the locations that sources and models configure.
        codes: returns the code of the project's models, with its Jinja: it declares the locations that it gives to
            `read_files` or to a format (``csv.`/data/x.csv` ``), and paths that are strings in Jinja.
    """

    find: Callable[[], Iterable[str]]
    codes: Callable[[], Iterable[str]] = tuple

    def __contains__(self, location: object) -> bool:
        return location in self._found

    @cached_property
    def _found(self) -> frozenset[str]:
        return frozenset(self.find()).union(*map(_named, self.codes()))


def _named(code: str) -> Iterator[str]:
    """Yields the locations that the code of a model names."""
    yield from named_files(code)
    yield from (found[1].replace("``", "`") for found in _BY_FORMAT.finditer(code))
    for block in _JINJA.findall(code):
        yield from (found[2] for found in _STRING.finditer(block) if _IN_A_FOLDER.search(found[2]))


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

"""The file in a folder of external files that records which model has written it, and which files the model owns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.materializations.external.target import ExternalTarget, refused


@dataclass(frozen=True)
class Marker:
    """The content of a marker file.

    Attributes:
        node: the id of the model, if the folder has a valid marker.
        files: paths relative to the folder.
        pattern: matches the names of only these files; None if the folder contains no other files.
    """

    node: str | None = None
    files: frozenset[str] = frozenset()
    pattern: str | None = None

    @classmethod
    def read(cls, data: bytes) -> Marker:
        """Parses a marker; returns an empty marker if the data is not valid."""
        try:
            given = foreign_json.loads(data)
            return cls(str(given["node"]), frozenset(map(str, given["files"])), given.get("pattern"))
        except (ValueError, KeyError, TypeError):
            return cls()

    def data(self) -> bytes:
        known = {"pattern": self.pattern} if self.pattern else {}
        return json.dumps({"node": self.node, **known, "files": sorted(self.files)}).encode()

    def check(self, target: ExternalTarget, found: Iterable[str]) -> None:
        """Checks that all files of the folder belong to the model.

        Args:
            found: the data files in the folder.

        Raises:
            DbtRuntimeError: if another model, or an unknown writer, has written some of them.
        """
        if self.node is not None and self.node != target.node:
            raise refused(target.location, f"{self.node} wrote it; choose another `location`, or empty it")
        others = sorted(set(found) - self.files)
        if others and self.node is None:
            reason = "it has no record that this model wrote it; choose another `location`, or empty it"
            raise refused(target.location, reason)
        if others:
            raise refused(target.location, f"it holds `{others[0]}`, which this model did not write; move it away")


def is_data(name: str) -> bool:
    """Returns whether readers treat a file of that name as data."""
    return not name.rpartition("/")[2].startswith((".", "_"))

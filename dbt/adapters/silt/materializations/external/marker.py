"""The file by which a folder of external files says which model has written it, and which files are the model's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from dbt.adapters.silt.materializations.external.target import ExternalTarget, refused


@dataclass(frozen=True)
class Marker:
    """What it says.

    Attributes:
        node: the id of the model; None where nobody has said so.
        files: the files, relative to the folder.
        pattern: of their names and of no others in the folder; None where there are no others.
    """

    node: str | None = None
    files: frozenset[str] = frozenset()
    pattern: str | None = None

    @classmethod
    def read(cls, data: bytes) -> Marker:
        """What is in a file; one that nobody here has written says nothing."""
        try:
            given = json.loads(data)
            return cls(str(given["node"]), frozenset(map(str, given["files"])), given.get("pattern"))
        except (ValueError, KeyError, TypeError):
            return cls()

    def data(self) -> bytes:
        known = {"pattern": self.pattern} if self.pattern else {}
        return json.dumps({"node": self.node, **known, "files": sorted(self.files)}).encode()

    def check(self, target: ExternalTarget, found: Iterable[str]) -> None:
        """Passes where the folder's files are all the model's.

        Args:
            found: the data files that are there.

        Raises:
            DbtRuntimeError: another model, or nobody known, has written some of them.
        """
        if self.node is not None and self.node != target.node:
            raise refused(target.location, f"{self.node} has written it; choose another `location`, or empty it")
        others = sorted(set(found) - self.files)
        if others and self.node is None:
            reason = "it has no record that this model has written it; choose another `location`, or empty it"
            raise refused(target.location, reason)
        if others:
            raise refused(target.location, f"holds `{others[0]}`, which this model has not written; move that away")


def is_data(name: str) -> bool:
    """Whether readers take a file of that name for data."""
    return not name.rpartition("/")[2].startswith((".", "_"))

"""The nodes of a run that works on a branch: their definitions when the run has built them, and the nodes that it still
has to build again.

    _branches/<id>/run.nodes.json

A process that drops the changes of some nodes may be killed before it has built them again; another process of the run,
also of a command that selects other nodes, then builds them. Without the document, no definition is known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.branches.attempts import FOLDER, parsed
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

NODES: Final = "run.nodes.json"


@dataclass(frozen=True)
class RunNodes:
    """The nodes of a run.

    Attributes:
        definitions: a hash of the definition of each node that a command of the run has selected, by its unique id.
        again: the nodes whose changes were dropped, and that must run again before the run is published.
    """

    definitions: Mapping[str, str] = field(default_factory=dict)
    again: frozenset[str] = frozenset()

    def with_new(self, definitions: Mapping[str, str]) -> RunNodes:
        """Returns the nodes with those among `definitions` that the run has not selected before."""
        return replace(self, definitions={**definitions, **self.definitions})

    def begun_again(self, nodes: Collection[str], definitions: Mapping[str, str]) -> RunNodes:
        """Returns the nodes when the changes of some of them are dropped.

        Args:
            nodes: the nodes whose changes are dropped; those without a definition no longer exist.
            definitions: the present definition of each node of the project.
        """
        kept = {each: text for each, text in self.definitions.items() if each in definitions and each not in nodes}
        present = {each: text for each, text in definitions.items() if each in nodes}
        return RunNodes({**kept, **present}, self.again | frozenset(nodes))


def read_nodes(store: Store, branch_id: str) -> RunNodes:
    """Returns the nodes of the run that works on a branch; empty if they are not recorded.

    Raises:
        CorruptLogError: if the document cannot be read.
        StorageError: if the storage failed.
    """
    try:
        return parsed(store, _path(branch_id), _nodes)
    except ObjectMissing:
        return RunNodes()


def write_nodes(store: Store, branch_id: str, nodes: RunNodes) -> None:
    """Records the nodes of the run that works on a branch.

    Raises:
        StorageError: if the storage failed; the nodes are as they were before.
    """
    store.make_folder(f"{FOLDER}/{branch_id}")
    body = {"format": FORMAT, "definitions": dict(nodes.definitions), "again": sorted(nodes.again)}
    store.put(_path(branch_id), json.dumps(body, ensure_ascii=False).encode())


def _path(branch_id: str) -> str:
    return f"{FOLDER}/{branch_id}/{NODES}"


def _nodes(body: Any) -> RunNodes:
    definitions = {str(each): str(text) for each, text in body["definitions"].items()}
    return RunNodes(definitions, frozenset(map(str, body["again"])))

"""The program behind `silt why`: compiles nodes with dbt, and prints as JSON the decision about each of them."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dbt.adapters.factory import FACTORY
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.builds.decision import Built, Cloned, Reused

_WITH_TABLE: Final = ("table", "incremental", "seed", "snapshot")
"""The materializations of nodes that may be reused."""
_REUSED, _BUILT, _UNKNOWN = "reused", "built", "cloned or built"
_RESULTS: Final = {Reused: _REUSED, Cloned: "cloned", Built: _BUILT}
_NO_NODES: Final = "NoNodesForSelectionCriteria"
"""The name of dbt's event that a part of the selection matches no node."""


class Compilation:
    """Nodes that dbt has compiled, in dbt's order, and the adapter that it used.

    Args:
        arguments: dbt's arguments after `dbt compile`.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.adapter: Any = None
        self.text = io.StringIO()
        self.unmatched: list[str] = []
        with contextlib.redirect_stdout(self.text):
            self._result = dbtRunner(callbacks=[self._note]).invoke(["--no-use-colors", "compile", *arguments])

    @property
    def succeeded(self) -> bool:
        return bool(self._result.success)

    @property
    def nodes(self) -> list[Mapping[str, Any]]:
        """The nodes that have a table, each as macros see it."""
        results: Any = self._result.result
        nodes = (each.node.to_dict(omit_none=True) for each in results.results)
        return [each for each in nodes if (each.get("config") or {}).get("materialized") in _WITH_TABLE]

    def inputs(self, unique_id: str) -> Iterator[str]:
        """Yields the direct inputs of a node; a view is replaced by its inputs."""
        known = self.adapter.get_macro_resolver().nodes
        for name in _parents(known, unique_id):
            if name in known and known[name].config.materialized not in _WITH_TABLE:
                yield from self.inputs(name)
            else:
                yield name

    def _note(self, event: Any) -> None:
        """Keeps the adapter, which dbt forgets when the command has ended, and the warnings about the selection."""
        self.adapter = self.adapter or FACTORY.adapters.get("silt")
        if event.info.name == _NO_NODES:
            self.unmatched.append(event.info.msg)


def main(arguments: Sequence[str]) -> int:
    """Prints the decisions about the chosen nodes, and returns the exit code."""
    return answered(arguments, lambda compiled: list(_explained(compiled)))


def answered(arguments: Sequence[str], answer: Callable[[Compilation], Any]) -> int:
    """Compiles nodes, prints the JSON value that `answer` returns about them, and returns the exit code.

    Args:
        arguments: dbt's arguments after `dbt compile`.
    """
    compiled = Compilation(arguments)
    problems = [] if compiled.succeeded else [compiled.text.getvalue()]
    if problems or compiled.unmatched:
        print("\n".join(problems or compiled.unmatched), file=sys.stderr)
        return 1
    try:
        with compiled.adapter.connection_named("silt_compiled"), compiled.adapter.connections.exception_handler("it"):
            print(json.dumps(answer(compiled)))
    except DbtRuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _explained(compiled: Compilation) -> Iterator[dict[str, Any]]:
    earlier: dict[str, str] = {}
    for node in compiled.nodes:
        name = node["unique_id"]
        inputs = dict.fromkeys(each for each in compiled.inputs(name) if each in earlier)
        before = [f"{each} is {earlier[each]} before it" for each in inputs]
        decision = compiled.adapter.explained_reuse(node, may_clone=not before)
        reasons = [*before, *(() if before and isinstance(decision, Reused) else decision.reasons)]
        result = _RESULTS[type(decision)]
        if before:
            result = _BUILT if compiled.adapter.clone_target(node) is None else _UNKNOWN
        if result != _REUSED:
            earlier[name] = result
        yield {"node": name, "result": result, "reused": result == _REUSED, "reasons": reasons}


def _parents(known: Mapping[str, Any], unique_id: str) -> Sequence[str]:
    """Returns the ids of a node's direct inputs; empty for a source and a seed."""
    return getattr(known[unique_id].depends_on, "nodes", ()) if unique_id in known else ()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

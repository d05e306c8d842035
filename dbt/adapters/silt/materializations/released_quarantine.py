"""The program behind `silt quarantine --release`: releases the rows that pass the tests of a node, as they are now."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dbt.adapters.silt.engine.catalog.names.relation_names import completed
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import split_name
from dbt.adapters.silt.engine.released_rows import release
from dbt.adapters.silt.runs.explained_reuse import Compilation, answered


def main(arguments: Sequence[str]) -> int:
    """Releases the rows of the chosen node, and returns the exit code."""
    parser = ArgumentParser()
    parser.add_argument("--table", required=True)
    parser.add_argument("--where")
    own, of_dbt = parser.parse_known_args(arguments)
    return answered(of_dbt, lambda compiled: _released(compiled, own.table, own.where))


def _released(compiled: Compilation, table: str, where: str | None) -> dict[str, Any]:
    warehouse = compiled.adapter.connections.handle.warehouse
    for node in compiled.nodes:
        audits = compiled.adapter.audits_of_model(node)
        name = completed(split_name(audits.table), *warehouse.current)
        if str(name) == table:
            return asdict(release(warehouse, name, audits, where))
    raise InvalidArgumentError(f"no node of the project writes {table}", remedy="Name a model, seed or snapshot")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

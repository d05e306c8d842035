"""Times dbt's work next to statements, and prints a table for each part: `python -m benchmarks.dbt_work [PART ...]`.

Each part is a separate process, in which dbt and Spark are warm; the first round of each way is not counted. On a
machine with other work, compare the processor time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.dbt_work import maintenance, many_tables, partitions, python_models, seeds, snapshots
from benchmarks.dbt_work.measured import table_of

PARTS = {
    "seeds": seeds.measure,
    "snapshots": snapshots.measure,
    "python-models": python_models.measure,
    "many-tables": many_tables.measure,
    "partitions": partitions.measure,
    "maintenance": maintenance.measure,
}


def main() -> int:
    """Measures one part in this process, or several in separate processes; returns the number of failed parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dbt_work", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--share", type=float, default=1.0, help="of the full number of rows and tables")
    given = parser.parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    parts = given.parts or list(PARTS)
    if len(parts) == 1:
        with tempfile.TemporaryDirectory() as folder:
            Console(width=120).print(table_of(PARTS[parts[0]](Path(folder), given.share, given.rounds)))
        return 0
    options = ["--rounds", str(given.rounds), "--share", str(given.share)]
    each = ([sys.executable, "-m", "benchmarks.dbt_work", part, *options] for part in parts)
    return sum(subprocess.run(command, check=False).returncode != 0 for command in each)


if __name__ == "__main__":
    sys.exit(main())

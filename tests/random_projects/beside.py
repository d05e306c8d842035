"""Runs the dbt command that overlaps with the command of another process, and prints the ends of its nodes.

python -m tests.random_projects.beside PROJECT NOW ARGUMENTS...
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

from tests.random_projects.history import at, ends_of, run_dbt, start_spark


def main() -> int:
    folder, now, *arguments = sys.argv[1:]
    start_spark()
    with at(datetime.fromisoformat(now)):
        result = run_dbt(Path(folder), "target-beside", arguments)
    if result.exception is not None:
        return 1
    print(json.dumps(ends_of(result.result), sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())

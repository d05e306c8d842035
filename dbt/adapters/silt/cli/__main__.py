"""Runs `silt` for `python -m dbt.adapters.silt.cli`."""

from __future__ import annotations

import sys

from dbt.adapters.silt.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

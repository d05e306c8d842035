"""The command `silt`: what runs did to a warehouse, and what its tables are, without Spark and without dbt.

Each subcommand is a module with `add(subparsers)`, which declares it, and `run(arguments)`, which does it and gives the
exit code; `main.SUBCOMMANDS` names them.
"""

"""The command `silt`: shows runs and tables of a warehouse, and undoes runs, without Spark and without dbt.

Each subcommand is a module with `add(subparsers)`, which declares it, and `run(arguments)`, which runs it and returns
the exit code; `main.SUBCOMMANDS` names them.
"""

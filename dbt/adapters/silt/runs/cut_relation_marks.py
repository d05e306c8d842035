"""Marks of relations that dbt has cut; Jinja reads them for each relation, so this module needs no parser."""

MARK = "/* cut by dbt */"
"""The mark at the end of a subquery by which dbt has replaced a table; `--empty` uses another ending."""

WITHOUT_ROWS = " where false limit 0)"
"""Ends the subquery that dbt puts in place of a table for `--empty`."""

CTE_PREFIX = "__dbt__cte__"
"""Begins the name of a common table expression that stands for an ephemeral model or a fixture."""

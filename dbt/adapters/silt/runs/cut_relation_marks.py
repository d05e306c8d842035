"""Marks the relations that dbt has cut: read by Jinja for each relation, so without the parser."""

MARK = "/* cut by dbt */"
"""Follows a subquery that stands for a table."""

CTE_PREFIX = "__dbt__cte__"
"""Begins the name of a common table expression that stands for an ephemeral model or a fixture."""

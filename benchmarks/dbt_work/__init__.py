"""Times what dbt does beside statements, and the care for tables, each next to the least that does the same."""

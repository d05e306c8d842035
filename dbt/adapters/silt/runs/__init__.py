"""Makes a dbt command part of a logical run: its units of work, what it skips, records and reports."""

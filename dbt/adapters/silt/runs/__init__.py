"""One dbt command as a logical run: its run id, its units of work, what it reports, and `dbt retry`."""

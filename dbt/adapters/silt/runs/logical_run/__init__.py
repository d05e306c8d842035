"""Which logical run a dbt command belongs to: its run id, how it starts, is stopped, continued and retried."""

"""Shows the progress of running statements on a terminal, below dbt's output."""

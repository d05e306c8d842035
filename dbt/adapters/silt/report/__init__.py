"""Shows a warehouse as one page of HTML: its runs, models and tables, from logs, journal and dbt's artifacts."""

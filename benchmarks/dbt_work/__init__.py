"""Times dbt's work next to statements, and maintenance of tables, compared with minimal work for the same result."""

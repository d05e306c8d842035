"""What dbt itself costs: each run is a process of its own, as a user starts it."""

"""Times dbt itself: each run is its own process, as a user starts it."""

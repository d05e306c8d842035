"""Times dbt itself: each run is a separate process, like a user's."""

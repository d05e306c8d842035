"""Random tables and tests: the verdict before a commit is the verdict of `dbt test` after it."""

"""The branches of a database: a branch's tables and names, its registry, attempts, conflicts and later statements."""

"""Shows on a terminal, below what dbt prints, how far the statements are that run now."""

"""Plans upkeep and clustering; finds the files that VACUUM may delete, and damage in a table."""

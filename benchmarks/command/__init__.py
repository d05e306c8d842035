"""Times the command `silt`: each subcommand from a cold start, on a warehouse of many tables."""

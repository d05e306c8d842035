"""How long the command `silt` takes: each subcommand from a cold start, and over a warehouse of many tables."""

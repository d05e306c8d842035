"""Renders the answers of subcommands: for a terminal, as plain text, or as JSON."""

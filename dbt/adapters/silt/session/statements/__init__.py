"""Runs statements for `silt sql`, which sends them from another process."""

"""Runs statements for `silt sql`, which asks for them from another process."""

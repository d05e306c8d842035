"""Serves a warehouse to other programs: BI tools, notebooks and clients of other languages."""

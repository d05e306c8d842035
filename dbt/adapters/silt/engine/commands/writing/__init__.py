"""Writes data files and change files, and checks the rows on the pass that writes them."""

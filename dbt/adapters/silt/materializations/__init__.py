"""Does the work of materializations that does not suit Jinja: contracts, comments, seeds, fixtures, row comparison."""

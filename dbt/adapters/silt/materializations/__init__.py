"""Does for the materializations what Jinja should not do: contracts, comments, seeds, fixtures, row comparison."""

"""What the materializations need: contracts, comments, seeds, fixtures and the comparison of rows."""

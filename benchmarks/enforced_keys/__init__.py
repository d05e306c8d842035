"""The cost of an enforced key for appends to a large table."""

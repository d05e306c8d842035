"""Times statements with the checks of paths and rules, compared with the same statements without these checks."""

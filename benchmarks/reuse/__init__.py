"""Times the decision which nodes of a project are reused, from the logs of a warehouse."""

"""Times the hash of the rows that a CREATE TABLE of a node with `reuse` observes."""

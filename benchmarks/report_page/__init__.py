"""Times `silt report` on a warehouse of many tables: the time, the memory and the size of the page."""

"""Cold statements: each is the tenth statement of its process, on a table that the process has not opened yet."""

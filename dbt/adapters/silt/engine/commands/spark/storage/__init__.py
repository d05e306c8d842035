"""Where Spark finds the files of tables: paths, the settings of object stores, and whether it sees what we see."""

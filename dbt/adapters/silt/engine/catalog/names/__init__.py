"""The parts that the stores of a catalog share: names, their documents and errors, locations, the end of a log."""

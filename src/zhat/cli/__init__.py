"""The command line: the only home of print."""

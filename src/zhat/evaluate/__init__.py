"""Who evaluates: the one loop of ask, evaluate and tell, and processes, executors, clusters and commands."""

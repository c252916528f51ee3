"""Studies: estimates that outlive a process, with a study file, a database and tables."""

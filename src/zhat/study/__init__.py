"""Studies: evaluations that are asked for and told over days, kept in one file."""

"""Where a function is lowest: local searches."""

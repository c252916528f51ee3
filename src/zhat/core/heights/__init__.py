"""Models of heights λ(f − lowest), of which most are too high to matter."""

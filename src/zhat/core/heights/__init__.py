"""Heights λ(f − lowest): which of them matter, and where there are none, behind walls or where evaluations fail."""

"""The gauntlet: problems that are drawn anew whenever it is asked for them, and what methods make of them."""

"""The adaptive method: a search, then two kinds of surrogate that are judged by what they predicted."""

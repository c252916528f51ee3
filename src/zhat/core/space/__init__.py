"""The unit cube: axes that go round, places that are the same, points that stand for it."""

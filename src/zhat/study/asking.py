"""Which points are asked for next: those that nobody holds any more, then new ones that the method chooses."""

from __future__ import annotations

import time

from zhat.estimators.settings import Settings
from zhat.evaluate.run import Point
from zhat.problem.points import Points
from zhat.study.facts import KnownFacts
from zhat.study.holders import is_gone
from zhat.study.rows import Row
from zhat.study.store import Store


def take_free(store: Store, open_points: list[Row], n: int, holder: str, lease: float) -> list[Row]:
    """Return up to ``n`` open points whose holder is gone, or whose lease has run out, now held by somebody."""
    now = time.time()
    gone = {name for name in {row.holder for row in open_points} if is_gone(name)}
    free = [row for row in open_points if row.lease_until < now or row.holder in gone][:n]
    taken = set(store.take([row.id for row in free], now, holder, now + lease)) if free else set()
    return [row for row in free if row.id in taken]


def chosen_points(settings: Settings, known: KnownFacts, open_points: list[Row], n: int) -> Points:
    """Return up to ``n`` new points of the unit cube, chosen with those in mind that are open."""
    dim = settings.domain.dim
    facts, n_given = known.view()
    # The facts were read last: what was told in between is no longer open.
    still_open = [row for row in open_points if row.id not in known.told_ids]
    pending = Points.joined([row.unit for row in still_open], [row.number for row in still_open], dim)
    n_spent = len(facts) - n_given
    n = min(n, settings.budget - n_spent - len(pending))
    if n <= 0 or settings.too_many_failed(facts.ok[n_given:]):
        return Points.none(dim)
    return settings.choose(facts, n_given, pending, n)


def asked_points(store: Store, settings: Settings, facts: KnownFacts, n: int, who: str, lease: float) -> list[Point]:
    """Return up to ``n`` points that somebody holds from now on: free ones first, then new ones."""
    state, open_points = store.state(), store.open_points()
    taken = [Point(row.id, row.x) for row in take_free(store, open_points, n, who, lease)]
    while len(taken) < n:
        points = chosen_points(settings, facts, open_points, n - len(taken))
        if len(points) == 0:
            break
        x = settings.domain.to_user(points.unit)
        ids = store.insert(state, points, x, who, time.time() + lease)
        if ids is not None:
            return taken + [Point(id, row) for id, row in zip(ids, x, strict=True)]
        # Somebody asked out of turn: look again.
        state, open_points = store.state(), store.open_points()
    return taken

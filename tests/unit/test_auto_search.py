"""Descents side by side, further ones from elsewhere, and what their ends say of modes that nobody has seen."""

import math

import numpy as np
import pytest

from zhat.auto.known import known_of
from zhat.auto.sample import Sample
from zhat.auto.search import Basin, Search, basin_of
from zhat.core.search.trust_region import Descent
from zhat.core.space.natural import Space
from zhat.problem.task import Task
from zhat.protocol.remembered import Seen

SPACE = Space(2)
TASK = Task(2, 1.0, 400)


class Told:
    """A search with all that it asked for, told as soon as it asked."""

    def __init__(self, energy, unit, limit=20.0):
        self.energy, self.unit, self.limit = energy, unit, limit
        self.search = Search.begin(self.sample())

    def known(self):
        y = np.array([self.energy(u) for u in self.unit])
        return known_of(TASK, Seen(self.unit, y, np.zeros(len(y)), np.arange(len(y))))

    def sample(self):
        return Sample.of(self.known(), self.limit)

    def step(self, moved):
        self.search = moved
        plan, start = SPACE.unit_of_natural(self.search.plan), len(self.unit)
        self.unit = np.vstack([self.unit, plan])
        self.search = self.search.told(self.known(), start)

    def until_found(self, room=1000):
        while not self.search.basins:
            moved = self.search.advanced(self.sample(), room)
            if not len(moved.plan):
                self.search = moved
                break
            self.step(moved)

    def explore(self, allowance, fresh=None):
        def landscape(natural):
            return np.array([self.energy(u) for u in SPACE.unit_of_natural(natural)])

        self.search = self.search.__class__(**{**vars(self.search), "allowance": allowance})
        while True:
            moved = self.search.explored(self.sample(), landscape, fresh)
            if not len(moved.plan):
                self.search = moved
                return
            self.step(moved)


def bowls(*centres, width=0.05):
    def energy(u):
        return min(0.5 * float(np.sum(((u - np.array(centre)) / width) ** 2)) for centre in centres)

    return energy


def first_points(n=14, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def test_the_only_basin_is_found():
    told = Told(bowls((0.3, 0.6)), first_points())
    told.until_found()
    (basin,) = told.search.basins
    assert SPACE.unit_of_natural(basin.descent.best[None, :])[0] == pytest.approx([0.3, 0.6], abs=0.05)
    assert basin.descent.lowest < 1.0
    told.explore(100.0)
    # From wherever, it leads there.
    assert len(told.search.basins) == 1
    assert told.search.basins[0].n_descents >= 2
    assert told.search.log_unseen(np.ones(1)) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_so_is_another_one(seed):
    centres = (0.2, 0.25), (0.8, 0.75)
    told = Told(bowls(*centres), first_points(seed=seed))
    told.until_found()
    told.explore(150.0)
    found = sorted(SPACE.unit_of_natural(basin.descent.best[None, :])[0].tolist() for basin in told.search.basins)
    assert np.array(found) == pytest.approx(np.array(centres), abs=0.06)


@pytest.mark.parametrize("fresh", [None, np.array([0.75, 0.7])])
def test_a_basin_that_no_known_point_leads_to_is_found_from_a_fresh_one(fresh):
    centres = (0.2, 0.25), (0.8, 0.75)
    told = Told(bowls(*centres), 0.45 * first_points())
    told.until_found()
    told.explore(60.0, None if fresh is None else SPACE.natural(fresh[None, :])[0])
    assert len(told.search.basins) == (1 if fresh is None else 2)


def test_a_fresh_point_that_fails_costs_an_evaluation_and_no_more():
    def energy(u):
        return math.inf if u[0] > 0.6 else bowls((0.3, 0.3))(u)

    told = Told(energy, 0.5 * first_points())
    told.until_found()
    told.explore(1000.0)
    n = len(told.unit)
    told.explore(2.0, SPACE.natural(np.array([[0.9, 0.9]]))[0])
    assert len(told.unit) == n + 2
    assert len(told.search.basins) == 1
    assert not told.search.going


def test_a_search_stops_where_it_is_when_there_is_no_room():
    told = Told(bowls((0.3, 0.6)), first_points())
    told.until_found(room=0)
    (basin,) = told.search.basins
    assert basin.descent.lowest == min(told.energy(u) for u in told.unit)
    assert len(told.unit) == 14


def test_what_fails_is_as_high_as_anything():
    def energy(u):
        return math.inf if u[0] > 0.5 else bowls((0.45, 0.5))(u)

    told = Told(energy, first_points())
    told.until_found()
    assert told.search.basins[0].descent.lowest < 2.0


def test_a_straight_way_without_a_ridge_leads_home():
    place = Descent.at(np.zeros(2), 0.0)
    flat, ridge = (lambda x: np.sum(x**2, axis=1)), (lambda x: 5.0 * np.exp(-50.0 * (x[:, 0] - 0.5) ** 2))
    start = np.array([1.0, 0.0])
    assert basin_of((Basin(place),), start, SPACE, flat) == 0
    assert basin_of((Basin(place),), start, SPACE, ridge) is None
    other = Basin(Descent.at(np.array([0.9, 0.0]), 0.0))
    assert basin_of((Basin(place), other), start, SPACE, ridge) == 1


def basins(*counts):
    return tuple(Basin(Descent.at(np.zeros(2), 0.0), n) for n in counts)


def test_the_unseen_is_as_much_as_what_was_seen_once():
    def log_unseen(counts, shares):
        return Search((), basins=basins(*counts)).log_unseen(np.array(shares))

    # Nothing to count, and nothing seen once.
    assert log_unseen([5], [1.0]) == log_unseen([1], [1.0]) == log_unseen([3, 4], [0.9, 0.1]) == 0.0
    assert log_unseen([3, 2, 1], [0.5, 0.3, 0.2]) == pytest.approx(math.log(1.2))
    # As large as what is known, where each basin was found once.
    assert log_unseen([1, 1, 1], [0.5, 0.3, 0.2]) == pytest.approx(math.log(2.0))
    # A basin that holds nothing says that others like it do not either.
    assert log_unseen([4, 1], [1.0, 0.0]) == 0.0


def test_angles_are_searched_round_and_round():
    space, task = Space(2, periodic=(0, 1)), Task(2, 1.0, 400, periodic=(0, 1))

    def energy(u):
        return 8.0 * float(np.sum(1.0 - np.cos(2.0 * math.pi * (u - 0.98))))

    unit = np.array([[0.2, 0.3], [0.1, 0.15], [0.4, 0.2], [0.3, 0.1]])
    search, start = None, 0
    for _ in range(200):
        y = np.array([energy(u) for u in unit])
        known = known_of(task, Seen(unit, y, np.zeros(len(y)), np.arange(len(y))))
        sample = Sample.of(known, 20.0)
        search = Search.begin(sample) if search is None else search.told(known, start)
        search = search.advanced(sample, 1000)
        if not len(search.plan):
            break
        start, unit = len(unit), np.vstack([unit, space.unit_of_natural(search.plan)])
    assert search.basins[0].descent.lowest < 1.0
    assert np.all((unit >= 0.0) & (unit <= 1.0))

"""Descents side by side, further ones from elsewhere, and what their ends say of modes that nobody has seen."""

import math
from dataclasses import replace

import numpy as np
import pytest

from zhat.auto.known import known_of
from zhat.auto.sample import Sample
from zhat.auto.search import HOME_SHARE, Basin, Look, Search, basin_of
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
        self.unit = np.vstack([self.unit, SPACE.unit_of_natural(self.search.plan)])
        self.search = self.search.told(self.known())

    def until_found(self, room=1000):
        while not self.search.basins:
            moved = self.search.advanced(self.sample(), self.known(), room)
            if not len(moved.plan):
                self.search = moved
                break
            self.step(moved)

    def explore(self, allowance, fresh=(), explained=lambda place, height: None):
        """Go on from known points, and then from fresh places of the cube, one after the other."""

        def landscape(natural):
            return np.array([self.energy(u) for u in SPACE.unit_of_natural(natural)])

        self.search = replace(self.search, allowance=allowance)
        while True:
            number = self.search.n_looks
            look = Look(number, SPACE.natural(np.array([fresh[number]]))[0]) if number < len(fresh) else None
            moved = self.search.explored(self.sample(), self.known(), landscape, explained, look)
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


@pytest.mark.parametrize("fresh", [(), ((0.75, 0.7),)])
def test_a_basin_that_no_known_point_leads_to_is_found_from_a_fresh_one(fresh):
    centres = (0.2, 0.25), (0.8, 0.75)
    told = Told(bowls(*centres), 0.45 * first_points())
    told.until_found()
    told.explore(60.0, fresh)
    assert len(told.search.basins) == 1 + len(fresh)


def test_a_fresh_point_that_fails_costs_an_evaluation_and_no_more():
    def energy(u):
        return math.inf if u[0] > 0.6 else bowls((0.3, 0.3))(u)

    told = Told(energy, 0.5 * first_points())
    told.until_found()
    told.explore(1000.0)
    n = len(told.unit)
    told.explore(2.0, [(0.9, 0.9), (0.8, 0.9), (0.7, 0.9)])
    # One after the other, and none twice.
    assert told.unit[n:] == pytest.approx(np.array([(0.9, 0.9), (0.8, 0.9)]))
    assert told.search.n_looks == 2
    assert len(told.search.basins) == 1
    assert not told.search.going


def test_a_look_that_is_as_high_as_was_explained_is_as_good_as_a_descent():
    told = Told(bowls((0.3, 0.3)), 0.5 * first_points())
    told.until_found()
    told.explore(1000.0)
    n, n_descents = len(told.unit), told.search.basins[0].n_descents
    asked = []

    def explained(place, height):
        asked.append((SPACE.unit_of_natural(place[None, :])[0].tolist(), height))
        return 0

    places = [(0.9, 0.9), (0.8, 0.1), (0.7, 0.6)]
    told.explore(3.0, places, explained)
    assert told.unit[n:] == pytest.approx(np.array(places))
    # The last of them is judged when there is room for another.
    told.explore(1.0, places, explained)
    assert told.search.basins[0].n_descents == n_descents + 3
    assert not told.search.going
    assert [place for place, _ in asked] == [pytest.approx(place) for place in places]
    assert [height for _, height in asked] == pytest.approx([told.energy(np.array(place)) for place in places])


@pytest.mark.parametrize(("share", "is_home"), [(0.9, True), (1.1, False)])
def test_a_descent_is_at_home_only_on_low_ground(share, is_home):
    known = Told(bowls((0.3, 0.3)), 0.5 * first_points())
    known.until_found()
    sample = known.sample()
    above = sample.lowest + share * HOME_SHARE * sample.limit
    waiting = replace(Descent.at(SPACE.natural(np.array([[0.6, 0.6]]))[0], above), n_told=1)
    search = replace(known.search, waiting=(waiting,), allowance=1.0)
    # No ridge anywhere: the surrogate may not know of one up there.
    found = search.explored(sample, known.known(), lambda x: np.zeros(len(x)), lambda place, height: None, None)
    assert found.basins[0].n_descents == (2 if is_home else 1)
    assert len(found.going) == (0 if is_home else 1)


def test_what_is_known_already_is_told_at_once():
    whole = Told(bowls((0.3, 0.6)), first_points())
    whole.until_found()
    # The same search, which is given what the first one asked for: it asks for none of that again.
    again = Told(bowls((0.3, 0.6)), whole.unit)
    again.search = Search.begin(Told(whole.energy, whole.unit[:14]).sample())
    again.until_found()
    assert len(np.unique(again.unit, axis=0)) == len(again.unit)
    assert again.search.basins[0].descent.lowest <= whole.search.basins[0].descent.lowest + 1.0


def test_what_is_under_way_is_awaited():
    told = Told(bowls((0.3, 0.6)), first_points())
    asked = told.search.advanced(told.sample(), told.known(), 1000)
    plan = asked.plan
    assert len(plan) == 4
    # Two of them are told: the others ask for the same as before.
    told.unit = np.vstack([told.unit, SPACE.unit_of_natural(plan[1:3].copy())])
    moved = asked.told(told.known()).advanced(told.sample(), told.known(), 1000)
    assert np.array_equal(moved.plan[[0, 3]], plan[[0, 3]])
    assert not np.any(np.all(moved.plan[[1, 2]] == plan[[1, 2]], axis=1))
    assert [descent.n_told for descent in moved.going] == [0, 1, 1, 0]


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
    search = None
    for _ in range(200):
        y = np.array([energy(u) for u in unit])
        known = known_of(task, Seen(unit, y, np.zeros(len(y)), np.arange(len(y))))
        sample = Sample.of(known, 20.0)
        search = Search.begin(sample) if search is None else search.told(known)
        search = search.advanced(sample, known, 1000)
        if not len(search.plan):
            break
        unit = np.vstack([unit, space.unit_of_natural(search.plan)])
    assert search.basins[0].descent.lowest < 1.0
    assert np.all((unit >= 0.0) & (unit <= 1.0))

"""How fast the relative error of Z can fall with the budget T: the paper's Theorems 1 to 4 and Table 1, as numbers.

The inverse temperature is λ = Θ(T^c), or Θ(log T), and the noise σ = Θ(T^a), or none. A bound T^p (log T)^q is given by
its exponents p and q. They are floats, and two that agree to `EXPONENT_TOLERANCE` are the same, so that a caller's
``c = (2 * nu + d) / (4 * nu + 4 * d)`` lies on the border of a condition and not a rounding error beside it.

Where this module and the paper differ (1 to 3 are line 9 of the reading notes):

1. For a = −1/2 the text after Theorem 2 prints the lower bound λT^{−1/2}. The theorem and Table 1 give λT^{−1}.
2. The exponent −d/(4ν+4d) at the largest c, printed there for a = −1/2, is that of a = 0; for −1/2 it is −d/(2ν+2d).
3. The appendix prints M/η² = Θ(M^{−(2ν+2d)/d}) for the bump class. From η = Θ(M^{−ν/d−1/2}) the sign is plus.
4. Theorem 4 allows two batches with λ = log T at a = 0. Its proof needs λσ = O(1); with λσ = log T the residuals'
   variance grows like e^{(log T)²}/T, and they miss the rare values that carry their mean. Here it is a < 0.
5. For λ → 0 the upper bounds of Table 1 are not those of Theorems 3 and 4, but those of quadrature; see `rates`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from zhat.errors import InvalidArgument
from zhat.util.checks import whole

#: Exponents closer than this, relatively or absolutely, are the same.
EXPONENT_TOLERANCE = 1e-12
_POSITIVE = "a finite number above 0"

Term = Literal["noiseless", "noise", "both"]
Kind = Literal["BQ-like", "between", "BO-like"]
Method = Literal["mvs-exact", "mvs"]


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem, such as ``c <= nu/d + 1/2``, and the numbers on its two sides."""

    quantity: str
    relation: Literal["<", "<=", ">="]
    limit: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        """Whether the numbers satisfy it."""
        order = _compare(self.left, self.right)
        return {"<": order < 0, "<=": order <= 0, ">=": order >= 0}[self.relation]

    def __str__(self) -> str:
        """Return it in symbols, and how the numbers compare, as in ``c <= nu/d + 1/2 (2 > 5/4)``."""
        order = "<=>"[_compare(self.left, self.right) + 1]
        return f"{self.quantity} {self.relation} {self.limit} ({_short(self.left)} {order} {_short(self.right)})"


@dataclass(frozen=True)
class Bound:
    """A bound T^exponent · (log T)^log_exponent on the relative error, up to a constant; λ and σ are in it.

    ``term`` says which of its terms is the largest ("both" if they are of one order), ``theorem`` where it comes from.
    ``estimate`` is what attains an upper bound: "two batches" (Algorithm 1), "first batch alone" (Ẑ₁) or "quadrature";
    None for a lower bound, which no estimate escapes.
    """

    exponent: float
    log_exponent: float
    term: Term
    theorem: str
    conditions: tuple[Condition, ...]
    estimate: str | None = None

    @property
    def failing(self) -> tuple[Condition, ...]:
        """The conditions that do not hold: none, in a bound that `rates` returns."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    @property
    def reason(self) -> str:
        """What it needs and does not have."""
        return f"{self.theorem} needs {' and '.join(map(str, self.failing))}"

    def __lt__(self, other: Bound) -> bool:
        """Return whether it is of a lower order than another."""
        order = _compare(self.exponent, other.exponent) or _compare(self.log_exponent, other.log_exponent)
        return order < 0


@dataclass(frozen=True)
class Rates:
    """Lower and upper bound for one ν, d, λ and σ; where one is not known it is None, and its reason says why."""

    nu: float
    dim: int
    c: float | Literal["log"]
    a: float | None
    lower: Bound | None
    upper: Bound | None
    lower_reason: str = ""
    upper_reason: str = ""

    @property
    def estimate(self) -> str | None:
        """Which estimate attains the upper bound."""
        return None if self.upper is None else self.upper.estimate

    @property
    def gap(self) -> float | None:
        """The exponent of upper over lower bound, logarithms aside; None if one of them is missing."""
        if self.lower is None or self.upper is None:
            return None
        order = _compare(self.upper.exponent, self.lower.exponent)
        return self.upper.exponent - self.lower.exponent if order else 0.0

    @property
    def matches(self) -> bool:
        """Whether there are both bounds, with the same power of T."""
        return self.gap == 0.0


def rates(
    nu: float, dim: int, c: float | Literal["log"] = 0.0, a: float | None = None, *, strict: bool = False
) -> Rates:
    """Return the best lower and upper bound that the paper has for the relative error of Z.

    For c ≥ 0 they are those of Theorems 1 to 4. For c < 0 (λ → 0) the rate of quadrature, λ(T^{−ν/d−1} + σT^{−1/2})
    as in Plaskota (1996) and Cai et al. (2023), is an upper bound too, and is taken where it is better; that makes the
    λ → 0 half of Table 1. The paper states it without proof. zhat asks for λσ = O(1) besides, for this reason: the
    functions of finite Matérn norm are closed under products, so (1 − e^{−λf})/λ has a bounded norm, and an unbiased
    observation of it from a noisy y has a standard deviation of order σ only while λσ is bounded. Without noise the
    same argument would serve c = 0; there the paper claims no more than Theorem 3, and so does this function.

    The upper bound with noise does not turn into the noiseless one as a → −∞: Theorem 4 keeps ξ fixed.

    Parameters
    ----------
    nu, dim
        Smoothness ν > 0 of the Matérn kernel, and the dimension.
    c
        λ = Θ(T^c); "log" for λ = Θ(log T), which counts as c = 0 with every "at most" turned into "below".
    a
        σ = Θ(T^a); None for exact values.
    strict
        Raise InvalidArgument where a bound is missing, instead of returning None for it.
    """
    log = isinstance(c, str) and c == "log"
    nu, dim = _number("nu", nu, _POSITIVE, above=0.0), whole("dim", dim, at_least=1)
    c = 0.0 if log else _number("c", c, 'a finite number, or "log" for lambda = log T')
    a = None if a is None else _number("a", a, "a finite number, or None for no noise")
    setting = _Setting(nu, dim, c, log, a)
    lower, uppers = _lower_bound(setting), _upper_bounds(setting)
    # Of equal bounds the last one, so that a theorem goes before quadrature.
    upper = min((one for one in reversed(uppers) if not one.failing), default=None)
    missing = lower if lower.failing else uppers[-1] if upper is None else None
    if strict and missing is not None:
        failed = missing.failing[0]
        raise InvalidArgument(failed.quantity, failed.left, f"{failed}, for {missing.theorem}")
    lower_reason = lower.reason if lower.failing else ""
    upper_reason = "; ".join(one.reason for one in uppers) if upper is None else ""
    proved = None if lower.failing else lower
    return Rates(nu, dim, "log" if log else c, a, proved, upper, lower_reason, upper_reason)


@dataclass(frozen=True)
class _Setting:
    """The checked arguments of `rates`; ``c`` is 0 where ``log`` says that λ = log T."""

    nu: float
    dim: int
    c: float
    log: bool
    a: float | None

    def at_most(self, quantity: str, left: float, limit: str, right: float) -> Condition:
        """Return the condition left ≤ right; strict for λ = log T, which has no room on a border."""
        return Condition(quantity, "<" if self.log else "<=", limit, left, right)

    def bound(
        self, theorem: str, estimate: str | None, conditions: Sequence[Condition],
        noiseless: tuple[float, float], noise: tuple[float, float] = (-0.5, 0.0),
    ) -> Bound:  # fmt: skip
        """Return λ times the larger of two terms, each given by its powers of T (σ apart) and of log T."""
        (exponent, logs), order = noiseless, -1
        if self.a is not None:
            order = _compare(noise[0] + self.a, exponent) or _compare(noise[1], logs)
            exponent, logs = (noise[0] + self.a, noise[1]) if order > 0 else noiseless
        term: Term = "noise" if order > 0 else "noiseless" if order < 0 else "both"
        return Bound(exponent + self.c, logs + self.log, term, theorem, tuple(conditions), estimate)


def _lower_bound(s: _Setting) -> Bound:
    """Return Theorem 1, or with noise Theorem 2, whether or not its conditions hold.

    With noise, M bumps of height η = M^{−ν/d−1/2} are told apart by T = Mσ²/η² = σ²M^{(2ν+2d)/d} queries (the appendix
    prints this exponent with the wrong sign); the last condition says that λη stays bounded.
    """
    smoothness = s.nu / s.dim
    conditions = [Condition("nu + d/2", ">=", "1", s.nu + s.dim / 2, 1.0)]
    conditions += [s.at_most("c", s.c, "nu/d + 1/2", smoothness + 0.5)]
    if s.a is not None:
        # The last number is (2ν + d)/(2ν + 2d), written so that no ν overflows.
        largest = (0.5 - s.a) * (1.0 - 0.5 / (smoothness + 1.0))
        conditions += [s.at_most("a", s.a, "1/2", 0.5)]
        conditions += [s.at_most("c", s.c, "(1/2 - a)(2nu + d)/(2nu + 2d)", largest)]
    return s.bound("Theorem 1" if s.a is None else "Theorem 2", None, conditions, (-smoothness - 1.0, 0.0))


def _upper_bounds(s: _Setting) -> list[Bound]:
    """Return all upper bounds, whether or not their conditions hold; the last is the one that allows most."""
    smoothness, regret = s.nu / s.dim, _regret(s.nu, s.dim)
    total = s.c + (s.a or 0.0)
    bounded = [] if s.a is None else [s.at_most("a + c", total, "0", 0.0)]
    negative = Condition("c", "<", "0", s.c, 0.0)
    bounds = []
    if negative.holds:
        conditions = [negative, *bounded]
        bounds += [s.bound("reduction to quadrature (Table 1)", "quadrature", conditions, (-smoothness - 1.0, 0.0))]
    if s.a is None:
        conditions = [s.at_most("c", s.c, "nu/d", smoothness)]
        return [*bounds, s.bound("Theorem 3", "two batches", conditions, (-smoothness - 0.5, 0.0))]
    below = Condition("c", "<", "nu/(2nu + d)", s.c, regret)
    both_below = [Condition("a + c", "<", "nu/(2nu + d)", total, regret), below]
    return [
        *bounds,
        s.bound("Theorem 4, first part", "two batches", [*bounded, below], (-regret - 0.5, regret)),
        s.bound("Theorem 4, second part", "first batch alone", both_below, (-regret, regret), (-regret, regret + 0.5)),
    ]


def _regret(nu: float, dim: int) -> float:
    """Return ν/(2ν + d), the power of 1/T in the simple regret of noisy optimisation."""
    return 1.0 / (2.0 + dim / nu)


@dataclass(frozen=True)
class Regime:
    """Where one problem lies between quadrature and optimisation, and the method that the theory speaks for.

    ``kind`` is "BQ-like" for c ≤ 0 and "BO-like" for c ≥ ``optimisation_from``, else "between"; c and a are log λ and
    log σ over log T.
    """

    kind: Kind
    c: float
    a: float | None
    optimisation_from: float
    method: Method
    why: str
    rates: Rates


def regime(inverse_temperature: float, noise_std: float, budget: int, nu: float, dim: int) -> Regime:
    """Return where a problem lies, taking its λ, σ and T for a point of the curves λ = T^c and σ = T^a.

    It is like optimisation once the lower bound reaches the simple regret T^{−ν/d} + σ^{2ν/(2ν+d)} T^{−ν/(2ν+d)} (Bull
    2011; Scarlett et al. 2017): from c = 1 on without noise, from c = d/(4ν+2d) on for σ = 1.
    """
    inverse_temperature = _number("inverse_temperature", inverse_temperature, _POSITIVE, above=0.0)
    noise_std = _number("noise_std", noise_std, "a finite number of at least 0", at_least=0.0)
    log_budget = math.log(whole("budget", budget, at_least=2))
    c = math.log(inverse_temperature) / log_budget
    a = math.log(noise_std) / log_budget if noise_std > 0.0 else None
    found = rates(nu, dim, c, a)
    threshold = 1.0
    if a is not None:
        smoothness = found.nu / found.dim
        regret = max(-smoothness, (2.0 * a - 1.0) * _regret(found.nu, found.dim))
        # Noise above √T leaves nothing to compare: then any growing λ counts as optimisation.
        threshold = max(0.0, regret - max(-smoothness - 1.0, a - 0.5))
    kind: Kind = "BQ-like" if _compare(c, 0.0) <= 0 else "between" if _compare(c, threshold) < 0 else "BO-like"
    method, why = _recommended(c, a, inverse_temperature * noise_std)
    if found.upper is None:
        why += "; no upper bound of the paper covers this case"
    return Regime(kind, c, a, threshold, method, why, found)


def _recommended(c: float, a: float | None, product: float) -> tuple[Method, str]:
    """Return the method that the upper bounds speak for, and why; ``product`` is λσ."""
    if a is None:
        return "mvs-exact", "without noise the second batch takes another half power of T off the error of the first"
    fact = f"lambda*sigma = {product:.3g} is"
    if _compare(a + c, 0.0) <= 0:
        return "mvs-exact", f"{fact} at most 1, so the second batch is accurate enough to correct the first"
    return "mvs", f"{fact} above 1, and the second batch's variance grows like exp((lambda*sigma)^2)"


@dataclass(frozen=True)
class TableRow:
    """One entry of the paper's Table 1: for σ = Θ(T^a) the error is between λT^lower and λT^upper, as written there.

    λ goes "to zero", or "to infinity" as a small power of T; ``logs`` says that the upper bound hides logarithms (O*),
    ``condition`` what it needs. The values are None without ν and d, and that of the upper bound where this fails.
    """

    a: float | None
    inverse_temperature: Literal["to zero", "to infinity"]
    lower: str
    upper: str
    logs: bool = False
    condition: str = ""
    lower_value: float | None = None
    upper_value: float | None = None

    @property
    def matches(self) -> bool:
        """Whether the entry is a Θ."""
        return self.lower == self.upper


_TABLE = (
    TableRow(None, "to zero", "-nu/d - 1", "-nu/d - 1"),
    TableRow(None, "to infinity", "-nu/d - 1", "-nu/d - 1/2"),
    TableRow(-0.25, "to zero", "-3/4", "-3/4"),
    # At ν = d/2 itself the upper bound has a factor (log T)^{1/4} that the paper's Θ leaves out.
    TableRow(-0.25, "to infinity", "-3/4", "-3/4", condition="nu >= d/2"),
    TableRow(-0.5, "to zero", "-1", "-1"),
    TableRow(-0.5, "to infinity", "-1", "-(4nu + d)/(4nu + 2d)", logs=True),
    TableRow(0.0, "to zero", "-1/2", "-1/2"),
    TableRow(0.0, "to infinity", "-1/2", "-nu/(2nu + d)", logs=True),
)


def table1(nu: float | None = None, dim: int | None = None) -> list[TableRow]:
    """Return the paper's Table 1, entry by entry; with values if ν and d are given."""
    if nu is None and dim is None:
        return list(_TABLE)
    nu, dim = _number("nu", nu, _POSITIVE, above=0.0), whole("dim", dim, at_least=1)
    smoothness, regret = nu / dim, _regret(nu, dim)
    values = {"-nu/d - 1": -smoothness - 1.0, "-nu/d - 1/2": -smoothness - 0.5, "-3/4": -0.75, "-1": -1.0, "-1/2": -0.5}
    values |= {"-(4nu + d)/(4nu + 2d)": -regret - 0.5, "-nu/(2nu + d)": -regret}
    rows = [replace(row, lower_value=values[row.lower], upper_value=values[row.upper]) for row in _TABLE]
    smooth_enough = _compare(smoothness, 0.5) >= 0
    return [row if smooth_enough or not row.condition else replace(row, upper_value=None) for row in rows]


def format_rates(rates: Rates) -> str:
    """Return the bounds as lines of text."""
    inverse_temperature = "log T" if rates.c == "log" else _power(rates.c)
    noise = "no noise" if rates.a is None else f"sigma = {_power(rates.a)}"
    lines = [f"nu = {_short(rates.nu)}, d = {rates.dim}, lambda = {inverse_temperature}, {noise}"]
    bounds = ("lower", rates.lower, rates.lower_reason), ("upper", rates.upper, rates.upper_reason)
    for name, bound, reason in bounds:
        if bound is None:
            lines.append(f"{name} bound: none; {reason}")
            continue
        by = f", by {bound.estimate}" if bound.estimate else ""
        logs = f" {_power(bound.log_exponent, 'log T')}" if bound.log_exponent else ""
        lines.append(f"{name} bound: {_power(bound.exponent)}{logs}, {bound.theorem}{by}; largest term: {bound.term}")
        lines += [f"    {condition}" for condition in bound.conditions]
    if rates.gap is not None:
        verdict = "they match, up to logarithms" if rates.matches else f"they are {_power(rates.gap)} apart"
        lines.append(f"gap: {verdict}")
    return "\n".join(lines)


def format_table1() -> str:
    """Return Table 1 as lines of text, one for an entry."""
    lines = [f"{'sigma':<11}{'lambda':<13}{'lower bound':<24}upper bound"]
    for row in _TABLE:
        sigma = "0" if row.a is None else _power(row.a)
        lower, upper = f"lambda T^({row.lower})", f"lambda T^({row.upper})" + " (logs)" * row.logs
        note = "match" * row.matches + f" if {row.condition}" * bool(row.condition)
        lines.append(f"{sigma:<11}{row.inverse_temperature:<13}{lower:<24}{upper:<40}{note}".rstrip())
    return "\n".join(lines)


def _compare(x: float, y: float) -> int:
    """Return -1, 0 or 1 as x is below, the same as, or above y."""
    return 0 if math.isclose(x, y, rel_tol=EXPONENT_TOLERANCE, abs_tol=EXPONENT_TOLERANCE) else 1 if x > y else -1


def _short(value: float) -> str:
    """Return a number as a fraction, if it is a simple one."""
    fraction = Fraction(value).limit_denominator(64) if abs(value) < 1e5 else None
    return str(fraction) if fraction is not None and _compare(float(fraction), value) == 0 else f"{value:.5g}"


def _power(exponent: float, base: str = "T") -> str:
    text = _short(exponent)
    return {"0": "1", "1": base}.get(text, f"{f'({base})' if ' ' in base else base}^({text})")


def _number(argument: str, value: object, wanted: str, above: float = -math.inf, at_least: float = -math.inf) -> float:
    number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number > above and number >= at_least):
        raise InvalidArgument(argument, value, wanted)
    return number

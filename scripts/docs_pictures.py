"""Draw the pictures of the documentation from runs made here.

They are those of method.md, the one of the first page, that of the theory, those that pages draw themselves, and those
of the gallery.

    python scripts/docs_pictures.py [method] [demo] [theory] [pages] [gallery]

Look at each before you commit it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from PIL import Image

import zhat
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.target import target

sys.path.insert(0, str(Path(__file__).parent))
from docs_blocks import run_page

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BLUE, ORANGE, GREY = "#2b5c8a", "#d95f0e", "#777777"
#: Pages that write a picture, the file they write it to, and its name here.
OF_PAGES = (
    ("docs/tutorials/bayesian.md", "corner.png", "bayesian-corner.png"),
    ("docs/tutorials/physicist.md", "curve.png", "physicist-curve.png"),
    ("docs/howto/diagnostics.md", "residuals.png", "diagnostics-residuals.png"),
)

#: The gallery's problems: the model that is drawn, and how.
GALLERY = {
    "influenza": ("sir", "corner"),
    "cosmic_clocks": ("curved", "corner"),
    "beetles": ("cloglog", "corner"),
    "eight_schools": ("schools", "corner"),
    "butane": ("torsion", "surface"),
    "simulated_likelihood": ("pumps", "corner"),
}

Floats = NDArray[np.float64]


def four_pits(x: Floats) -> Floats:
    """Return Himmelblau's function, scaled; it has four minima of zero. Shape ``(n, 2)`` to ``(n,)``."""
    a, b = x[:, 0], x[:, 1]
    return ((a * a + b - 11.0) ** 2 + (a + b * b - 7.0) ** 2) / 20.0


PITS = [(-5.0, 5.0), (-5.0, 5.0)]


def grid(n: int) -> Floats:
    """Return the centres of n by n cells of the box."""
    axis = -5.0 + 10.0 * (np.arange(n) + 0.5) / n
    return np.stack(np.meshgrid(axis, axis, indexing="xy"), axis=-1).reshape(-1, 2)


def draw_rounds(est: zhat.Estimate, truth: float) -> None:
    """Draw what the method believed after some evaluations, and where it had looked."""
    assert isinstance(est.estimator, zhat.estimators.Adaptive)
    figure, axes = plt.subplots(1, 4, figsize=(11.0, 3.2), sharey=True, layout="constrained")
    points, previous = grid(120), 0
    for axis, n in zip(axes, (16, 32, 48, 96), strict=True):
        facts = est.evaluations.head(n)
        surface, _ = est.estimator.surface(est.task, facts)
        found = est.estimator.estimate(est.task, facts)
        density = np.exp(-np.maximum(surface(est.domain.to_unit(points)), -0.5)).reshape(120, 120)
        axis.imshow(np.sqrt(density), origin="lower", extent=(-5, 5, -5, 5), cmap="Blues", vmin=0, vmax=1.2)
        axis.plot(*facts.x[:previous].T, "o", ms=3, mfc="none", mec=GREY, mew=0.7)
        axis.plot(*facts.x[previous:].T, "o", ms=3.5, color=ORANGE)
        off = abs(found.log_z + est.domain.log_volume - truth)
        axis.set_title(f"{n} evaluations\nlog Z off by {off:.1g}, says ± {found.std_error:.1g}", fontsize=9)
        axis.set_xticks([-4, 0, 4])
        previous = n
    save(figure, "method-rounds.png")


def draw_parts(est: zhat.Estimate, truth: float) -> None:
    """Draw the parts of the error over the number of evaluations, beside the true error."""
    assert est.estimator is not None
    counts = np.array([12, 16, 20, 24, 32, 40, 48, 64, 80, 96])
    findings = [est.estimator.estimate(est.task, est.evaluations.head(int(n))) for n in counts]
    figure, axis = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    total = [found.std_error for found in findings]
    axis.plot(counts, total, color="#bbbbbb", lw=6, label="standard error: all of them")
    labels = {
        "surrogate_error": "left open by the surrogate",
        "drift_error": "log Z still moves",
        "modes_error": "hidden modes",
        "search_error": "the search goes on",
        "quadrature_error": "of the integral",
    }
    for (key, label), style in zip(labels.items(), ("-", "--", "-.", ":", (0, (1, 1, 4, 1))), strict=True):
        values = np.array([float(found.diagnostics.get(key, np.nan)) for found in findings])
        if np.any(values > 1e-7):
            axis.plot(counts, np.where(values > 1e-7, values, np.nan), linestyle=style, color=BLUE, label=label, lw=1.2)
    off = [abs(found.log_z + est.domain.log_volume - truth) for found in findings]
    axis.plot(counts, off, "o", color=ORANGE, label="|log Z − truth|")
    axis.set(xscale="log", yscale="log", xlabel="evaluations", ylabel="error of log Z", ylim=(1e-7, 20))
    axis.set_xticks(counts[[0, 1, 3, 4, 6, 7, 9]], [str(n) for n in counts[[0, 1, 3, 4, 6, 7, 9]]])
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize=8)
    save(figure, "method-parts.png")


def draw_two_batches() -> None:
    """Draw the paper's algorithm on an interval: a design, a surrogate, and draws that correct it."""

    def energy(x: Floats) -> float:
        return float(1.2 * np.sin(7.0 * x[0]) + 3.0 * (x[0] - 0.6) ** 2 + 0.4 * np.sin(17.0 * x[0]))

    est = zhat.estimate(energy, [(0.0, 1.0)], 3.0, 16, method="mvs-exact", seed=2)
    estimator = est.estimator
    assert isinstance(estimator, zhat.estimators.TwoBatch)
    first = estimator.first_batch(est.task, est.evaluations)
    assert first is not None
    x = np.linspace(0.0, 1.0, 401)[:, None]
    mean = first.mean(x)
    sd = np.sqrt(np.maximum(np.diag(first.covariance(x)), 0.0))
    true = np.array([energy(row) for row in x])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    left.fill_between(x[:, 0], mean - 2 * sd, mean + 2 * sd, color=BLUE, alpha=0.2, lw=0, label="± 2 sd")
    left.plot(x[:, 0], mean, color=BLUE, label="surrogate μ")
    left.plot(x[:, 0], true, color="black", lw=1, ls="--", label="energy f")
    seen = est.evaluations
    left.plot(seen.x[:8, 0], seen.y[:8], "o", color=BLUE, ms=5)
    left.set(xlabel="x", title="8 queries where the surrogate is least certain")
    left.legend(frameon=False, fontsize=8)
    right.fill_between(x[:, 0], np.exp(-3.0 * mean), color=BLUE, alpha=0.25, lw=0, label=r"$e^{-\lambda\mu}$")
    right.plot(x[:, 0], np.exp(-3.0 * true), color="black", lw=1, ls="--", label=r"$e^{-\lambda f}$")
    draws = seen.x[8:, 0]
    predicted = np.exp(-3.0 * first.mean(seen.x[8:]))
    right.vlines(draws, predicted, np.exp(-3.0 * seen.y[8:]), color=ORANGE, lw=1.5)
    right.plot(draws, np.exp(-3.0 * seen.y[8:]), "o", color=ORANGE, ms=5, label=r"draws from $e^{-\lambda\mu}$")
    right.set(xlabel="x", title="8 draws, whose ratios correct the integral")
    right.legend(frameon=False, fontsize=8)
    save(figure, "method-two-batches.png")


def draw_demo() -> None:
    """Draw what `zhat demo` finds on Ackley's function, in letters that can be read at the width of a page."""
    problem, seeds = zhat.problems.get("ackley", dim=2), range(5)
    truth = problem.log_z(5.0)
    runs = {
        method: [
            zhat.estimate(problem.energy, problem.bounds, 5.0, 256, method=method, seed=seed, vectorized=True)
            for seed in seeds
        ]
        for method in zhat.estimators.METHODS
    }
    plt.rcParams.update({"font.size": 11})
    figure = plt.figure(figsize=(8.6, 7.4), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1.35, 1.0])
    axes = above.subplots(1, 2, sharey=True)
    side = np.linspace(-2.0, 2.0, 161)
    points = np.stack(np.meshgrid(side, side, indexing="xy"), axis=-1).reshape(-1, 2)
    highest = float(np.max(problem.energy(points)))
    for axis, method in zip(axes, ("auto", "mvs-exact"), strict=True):
        est = runs[method][0]
        assert isinstance(est.estimator, zhat.estimators.Adaptive | zhat.estimators.TwoBatch)
        surface, n_before = est.estimator.surface(est.task, est.evaluations)
        # What is above anything there is would only take the colours away from the rest.
        values = np.clip(surface(est.domain.to_unit(points)), 0.0, highest).reshape(161, 161)
        axis.contourf(side, side, values, levels=np.linspace(0.0, highest, 25), cmap="viridis")
        axis.plot(*est.evaluations.x[:n_before].T, "o", ms=4, color="white", mec="black", mew=0.5, label="design")
        axis.plot(*est.evaluations.x[n_before:].T, "o", ms=4, color=ORANGE, mec="black", mew=0.5, label="draws")
        axis.set(aspect="equal", title=f"{method}: where it looked", xlim=(-2.08, 2.08), ylim=(-2.08, 2.08))
    above.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    errors = below.subplots()
    for row, (_, found) in enumerate(runs.items()):
        off = np.array([abs(np.expm1(run.log_z - truth)) for run in found])
        errors.plot(off, np.full(len(off), row), "o", ms=6, color=BLUE, alpha=0.55, mew=0)
        errors.plot([np.median(off)] * 2, [row - 0.3, row + 0.3], color=ORANGE, lw=3)
    errors.set(xscale="log", xlabel="relative error |Ẑ/Z − 1| of 5 runs, and their median")
    errors.set_yticks(range(len(runs)), list(runs))
    errors.invert_yaxis()
    errors.grid(axis="x", color="#dddddd", lw=0.7)
    above.suptitle("Ackley's function at λ = 5 from 256 queries: surrogates, and the points they rest on")
    plt.rcdefaults()
    save(figure, "demo.png")


def draw_theory() -> None:
    """Draw the residual's variance beside its bounds, and the information gain beside its rate."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    draw_variance(left)
    draw_information(right)
    save(figure, "theory-quantities.png")


def draw_variance(axes: plt.Axes) -> None:
    """Draw Var[R̂/R] of a function of norm 1 over T: simulated, exactly, and bounded in two ways."""
    kernel, noise_std, inverse_temperature, n_batches = zhat.Kernel(1.5, 0.2), 0.05, 2.0, 2000
    generator = np.random.default_rng(4)
    centres, coefficients = generator.random((30, 1)), generator.standard_normal(30)
    coefficients /= np.sqrt(coefficients @ kernel.matrix(centres, centres) @ coefficients)
    fine = np.linspace(0.0, 1.0, 4001)[:, None]
    budgets = np.array([16, 32, 64, 128, 256])
    found: dict[str, list[float]] = {"simulated": [], "exact": [], "sup": [], "lemma": []}

    def energy(x: Floats) -> Floats:
        return kernel.matrix(x, centres) @ coefficients

    for budget in budgets:
        half = budget // 2
        x = maximum_variance_design(kernel, half, 1).points
        y = energy(x) + noise_std * generator.standard_normal(half)
        mean = GaussianProcess.condition(kernel, x, y, noise_std**2).mean
        exact = zhat.theory.residual_variance(energy, mean, 1, inverse_temperature, noise_std, half)
        drawn = target(mean, inverse_temperature, 1, generator).draw(half * n_batches, generator).points
        noise = noise_std * generator.standard_normal(len(drawn))
        logs = (
            inverse_temperature * (mean(drawn) - energy(drawn) - noise) - 0.5 * (inverse_temperature * noise_std) ** 2
        )
        ratios = np.mean(np.exp(logs - exact.log_residual).reshape(n_batches, half), axis=1)
        sup_error = float(np.max(np.abs(energy(fine) - mean(fine))))
        lemma = zhat.theory.sup_error_bound(kernel, x, rkhs_norm=1.0, noise_std=noise_std, xi=noise_std**2)
        found["simulated"].append(float(np.var(ratios)))
        found["exact"].append(exact.value)
        found["sup"].append(zhat.theory.variance_bound(inverse_temperature, noise_std, sup_error, half))
        found["lemma"].append(zhat.theory.variance_bound(inverse_temperature, noise_std, lemma.value, half))
    axes.loglog(budgets, found["lemma"], color=ORANGE, ls="--", label="bound, with the lemma's sup norm")
    axes.loglog(budgets, found["sup"], color=ORANGE, label=r"bound, with the true $\|f-\mu\|_\infty$")
    axes.loglog(budgets, found["exact"], color=BLUE, label="exact")
    axes.loglog(budgets, found["simulated"], "o", color="black", ms=5, label=f"{n_batches} simulated second batches")
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, [str(budget) for budget in budgets])
    axes.set_xlabel("T")
    axes.set_title(r"Var[$\hat{R}/R$]: Matérn 3/2 in 1-d, $\|f\|$ = 1, $\lambda$ = 2, $\sigma$ = 0.05", fontsize=10)
    axes.legend(fontsize=8)
    axes.grid(color="#E5E5E5", lw=0.7)


def draw_information(axes: plt.Axes) -> None:
    """Draw γ_T over T between its bounds, for two smoothnesses, with the rate that the theory gives."""
    candidates = np.linspace(0.0, 1.0, 2049)[:, None]
    times = np.arange(1, 513)
    for nu, colour, name in ((0.5, ORANGE, "1/2"), (1.5, BLUE, "3/2")):
        gain = zhat.theory.greedy_information_gain(zhat.Kernel(nu, 0.2), candidates, len(times), 0.01)
        rate = np.array([zhat.theory.information_gain_rate(nu, 1, float(t)) for t in times])
        axes.fill_between(times, gain.lower, gain.upper, color=colour, alpha=0.25, lw=0)
        axes.loglog(times, gain.lower, color=colour, label=rf"greedy, $\nu$ = {name}, and what $\gamma_T$ may be")
        shown = times >= 8
        scaled = rate * gain.lower[-1] / rate[-1]
        axes.loglog(times[shown], scaled[shown], color=colour, ls=":", label="its rate in T, scaled to end with it")
    axes.set_xlabel("T")
    axes.set_title(r"information gain: Matérn in 1-d, $\xi$ = 0.01", fontsize=10)
    axes.legend(fontsize=8, loc="lower right")
    axes.grid(color="#E5E5E5", lw=0.7)


def save(figure: plt.Figure, name: str) -> None:
    """Write a picture with a palette, which is all that such drawings need."""
    figure.savefig(IMAGES / name, dpi=110)
    plt.close(figure)
    shrink(IMAGES / name)


def shrink(path: Path) -> None:
    """Make a PNG smaller: at most 256 colours."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def draw_pages() -> None:
    """Run the pages that draw, and keep what they drew."""
    for page, drawn, name in OF_PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run_page(ROOT / page)
            shutil.copy(drawn, IMAGES / name)
        shrink(IMAGES / name)


def draw_gallery() -> None:
    """Run the gallery's problems and draw what they found."""
    sys.path.append(str(ROOT / "examples" / "gallery"))
    for name, (model, kind) in GALLERY.items():
        path = IMAGES / f"gallery-{name}.png"
        importlib.import_module(name).estimates()[model].plot(kind, path)
        shrink(path)


def main() -> None:
    """Draw everything, or what is named: method, demo, theory, pages, gallery."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    drawings = {
        "method": draw_method, "demo": draw_demo, "theory": draw_theory, "pages": draw_pages, "gallery": draw_gallery,
    }  # fmt: skip
    for name, draw in drawings.items():
        if name in (sys.argv[1:] or drawings):
            draw()


def draw_method() -> None:
    """Draw the pictures of method.md."""
    truth = float(np.log(np.mean(np.exp(-four_pits(grid(2000)))) * 100.0))
    est = zhat.estimate(four_pits, PITS, 1.0, 96, seed=0, vectorized=True)
    draw_rounds(est, truth)
    draw_parts(est, truth)
    draw_two_batches()


if __name__ == "__main__":
    main()

"""Pictures of the pages, each for a light and a dark page, drawn from fits that run here and from the records.

``python docs/tools/figures.py`` draws all of them; ``speed``, which the README shows, is kept in ``docs/pictures``.
"""

import warnings
from pathlib import Path

import hinge
import matplotlib as mpl
import numpy as np
import performance
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs, make_circles, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

ROOT = Path(__file__).parents[2]
LOOKS = {
    "light": {"ink": "#1f2328", "pale": "#8b949e", "colours": ("#2a78d6", "#eb6834", "#1baf7a", "#8a5cd1")},
    "dark": {"ink": "#d5d9de", "pale": "#7d8590", "colours": ("#5598e7", "#e8743f", "#2fb083", "#a98ae0")},
}


def style(look):
    """Settings of matplotlib for a page of this look."""
    ink, pale = look["ink"], look["pale"]
    return {
        "font.size": 10, "svg.hashsalt": "hinge", "svg.fonttype": "none", "font.family": "sans-serif",
        "axes.prop_cycle": mpl.cycler(color=look["colours"]), "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": pale, "axes.labelcolor": ink, "axes.titlecolor": ink, "axes.titlesize": 10.5,
        "text.color": ink, "xtick.color": pale, "ytick.color": pale, "xtick.labelcolor": ink,
        "ytick.labelcolor": ink, "grid.color": pale, "grid.alpha": 0.25, "legend.frameon": False,
        "savefig.transparent": True, "lines.linewidth": 1.8,
    }  # fmt: skip


def axes(n=1, size=(7, 3.6), **options):
    """Axes side by side."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(1, n, squeeze=False, **options)[0]


def recoloured(figure, look):
    """The figure, with what a plot has drawn in black in the ink of the page, and thousands of facets as pixels."""
    for ax in figure.axes:
        for collection in ax.collections:
            collection.set_rasterized(True)
        for line in ax.get_lines():
            if to_rgba(line.get_color()) == to_rgba("black"):
                line.set_color(look["ink"])
    return figure


def speed(look):
    """Geometric means of the others' times over ours, and every case."""
    found = performance.groups(performance.read(ROOT / "benches" / "record")["figures"])
    shown = [
        ("one fit, to a gap of 0.0001", "liblinear, 1 thread", "LIBLINEAR, one fit"),
        ("one fit, to a gap of 0.0001", "sklearn, 1 thread", "scikit-learn, one fit"),
        ("one fit, to a gap of 0.0001", "multicore, 2 threads", "multi-core LIBLINEAR, one fit"),
        ("one fit, to a gap of 0.0001", "snapml, 2 threads", "Snap ML, one fit"),
        ("the search for C", "liblinear, 1 thread", "LIBLINEAR, search for C"),
        ("the search for C", "lbfgs, 2 threads", "scikit-learn, search for C"),
    ]
    figure, (ax,) = axes(size=(7.2, 3.1))
    for row, (arena, rival, label) in enumerate(reversed(shown)):
        ratios = found[arena][rival]
        mean = performance.mean(ratios)
        below = [row - 0.36] * len(ratios)
        ax.plot(ratios, below, "|", color=look["pale"], alpha=0.8, markersize=5, markeredgewidth=0.9)
        ax.plot([1, mean], [row, row], color=look["colours"][0], linewidth=9, solid_capstyle="butt")
        ax.annotate(f"{mean:.1f}x", (mean, row), (5, 0), textcoords="offset points", va="center", weight="bold")
        ax.annotate(label, (0, row), (-8, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    va="center", ha="right")  # fmt: skip
    ax.axvline(1, color=look["ink"], linewidth=1)
    ax.set_xscale("log")
    ax.set_xlim(0.3, 200)
    ax.set_ylim(-0.75, len(shown) - 0.4)
    ax.set_xticks([1, 10, 100], ["as fast", "10 times", "100 times"])
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_title("their time over ours: mean (bar) and every case (ticks)", loc="left")
    return figure


def search(look):
    """A search with refinement, chosen within one standard error."""
    X, y = make_classification(n_samples=1000, n_features=200, n_informative=15, flip_y=0.1, random_state=0)
    table = hinge.select_C(X, y, cv=5, scoring="roc_auc", refine=3, choose="one_se")
    figure, (ax,) = axes()
    table.plot(ax)
    recoloured(figure, look)
    ax.legend()
    return figure


def weights(look):
    """Weights by C, from no feature upward."""
    X, y = make_classification(500, 200, n_informative=8, n_redundant=0, flip_y=0.05, shuffle=False, random_state=0)
    table = hinge.select_C(
        X,
        y,
        loss="logistic",
        penalty="l1",
        scoring="accuracy",
        choose="one_se",
        keep_coefs=True,
        max_drop=0.02,
        ratio=1.25,
    )
    figure, (ax,) = axes()
    table.plot_coefs(ax, n_features=60)
    recoloured(figure, look)
    ax.set_title(f"{len(table.Cs)} values of C; dashed: chosen, {table.n_nonzero[table.index].mean():g} features")
    return figure


def plane(look):
    """The facets of a small plane, and the errors on held-out rows over it."""
    X, y = make_classification(n_samples=120, n_features=6, weights=[0.8], flip_y=0.1, random_state=0)
    path = hinge.cost_path(X[:30], y[:30], box=(4, 4))
    figure, (left, right) = axes(2, (9, 3.8))
    path.plot(left, vertices=False)
    left.set_title(f"{path.n_facets} facets")
    path.score_surface(X[30:], y[30:]).plot(right, false_negative=4.0)
    right.set_title("cost of the errors on held-out rows")
    return recoloured(figure, look)


def losses(look):
    """The four losses by margin."""
    m = np.linspace(-3, 3, 301)
    figure, (ax,) = axes(size=(6, 3.4))
    ax.plot(m, np.maximum(0, 1 - m), label='"hinge"')
    ax.plot(m, np.maximum(0, 1 - m) ** 2, label='"squared_hinge"')
    ax.plot(m, np.log1p(np.exp(-m)), label="logistic")
    ax.plot(m, np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m), "--", label='"modified_huber"')
    ax.set(xlabel="margin  y (w.x + b)", ylabel="loss", ylim=(-0.1, 8))
    ax.grid()
    ax.legend()
    return figure


def gap(look):
    """What a fit proves epoch by epoch, and the truth."""
    X, y = make_classification(n_samples=3000, n_features=200, n_informative=20, flip_y=0.1, random_state=0)
    options = {"loss": "hinge", "C": 0.01, "solver": "dual_cd", "tol": 1e-5}
    best = hinge.LinearSVC(loss="hinge", C=0.01, tol=1e-10, max_iter=100_000).fit(X, y).certificate_.dual[0]
    epochs = np.unique(np.geomspace(1, 150, 16).astype(int))
    proved, true = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for n in epochs:
            certificate = hinge.LinearSVC(max_iter=int(n), **options).fit(X, y).certificate_
            proved.append(certificate.relative_gap[0])
            true.append(certificate.primal[0] / best - 1)
    figure, (ax,) = axes(size=(6, 3.4))
    ax.loglog(epochs, proved, "o-", markersize=4, label="relative_gap: proved")
    ax.loglog(epochs, true, "o-", markersize=4, label="the distance to the optimum")
    ax.set(xlabel="epochs", ylabel="share of the objective")
    ax.grid()
    ax.legend()
    return figure


def regions(ax, X, y, model, look):
    """What a model answers in the plane of two features."""
    (left, low), (right, high) = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    xs, ys = np.meshgrid(np.linspace(left, right, 240), np.linspace(low, high, 240))
    answers = model.predict(np.c_[xs.ravel(), ys.ravel()]).reshape(xs.shape)
    colours = look["colours"]
    classes = np.unique(y)
    ax.contourf(xs, ys, answers, levels=np.arange(len(classes) + 1) - 0.5, colors=colours[: len(classes)], alpha=0.22)
    for k in classes:
        ax.plot(*X[y == k].T, ".", markersize=3, color=colours[k])
    ax.set(xticks=[], yticks=[])
    recoloured(ax.figure, look)


def classes(look):
    """Three ways to learn four classes."""
    X, y = make_blobs(400, centers=[[-3, 0], [0, 0.4], [3, 0], [0, 3.2]], cluster_std=0.75, random_state=0)
    figure, all_axes = axes(3, (9, 3.1))
    models = {
        'LinearSVC(), "ovr"': hinge.LinearSVC(),
        '"crammer_singer"': hinge.LinearSVC(multi_class="crammer_singer"),
        "LogisticRegression(), multinomial": hinge.LogisticRegression(),
    }
    for ax, (name, model) in zip(all_axes, models.items(), strict=True):
        regions(ax, X, y, model.fit(X, y), look)
        ax.set_title(f"{name}: {model.score(X, y):.0%}")
    return figure


def pairs(look):
    """A circle, learned without and with products of features."""
    X, y = make_circles(400, noise=0.12, factor=0.45, random_state=0)
    figure, all_axes = axes(2, (6.4, 3.1))
    for ax, degree in zip(all_axes, (1, 2), strict=True):
        model = hinge.LinearSVC(degree=degree).fit(X, y)
        regions(ax, X, y, model, look)
        ax.set_title(f"degree={degree}: {model.score(X, y):.0%}")
    return figure


def calibration(look):
    """How often rows of a probability are positive."""
    X, y = make_classification(n_samples=20_000, n_features=20, n_informative=8, flip_y=0.1, random_state=0)
    train, test = slice(0, 4000), slice(4000, None)
    figure, (ax,) = axes(size=(4.8, 4))
    ax.plot([0, 1], [0, 1], color=look["pale"], linewidth=1)
    for method in ("sigmoid", "isotonic"):
        model = hinge.LinearSVCCV(cv=5, probability=method).fit(X[train], y[train])
        p = model.predict_proba(X[test])[:, 1]
        bins = np.digitize(p, np.linspace(0, 1, 13)[1:-1])
        mean = [(p[bins == k].mean(), y[test][bins == k].mean()) for k in np.unique(bins) if (bins == k).sum() >= 30]
        ax.plot(*np.transpose(mean), "o-", markersize=4, label=f'probability="{method}"')
    ax.set(xlabel="predicted probability", ylabel="share of positive rows, held out")
    ax.grid()
    ax.legend()
    return figure


def top_features(look):
    """The largest weights of the model of the page on tables, by name."""
    random = np.random.default_rng(0)
    carrier = random.choice(["north", "south", "quick"], 4000)
    distance = random.gamma(2.0, 300.0, 4000).round()
    late = random.random(4000) < 0.15 + 0.5 * (carrier == "south") + 0.3 * (distance > 900)
    words = np.where(late, "heavy fragile parcel", "small light parcel")
    note = [f"{a} for order {k}" if random.random() < 0.7 else "no note" for k, a in enumerate(words)]
    columns = {
        "carrier": "categorical",
        "distance": {"kind": "numeric", "bins": 8},
        "note": {"kind": "text", "ngrams": (1, 2), "min_df": 5},
    }
    model = make_pipeline(hinge.TableEncoder(columns, numbering="counted"), hinge.LogisticRegressionCV(cv=5))
    model.fit({"carrier": carrier, "distance": distance, "note": note}, np.where(late, "late", "on time"))
    names, weights = zip(*hinge.Predictor.of(model).top_features(12), strict=True)
    figure, (ax,) = axes(size=(6, 3.8))
    ax.barh(names[::-1], weights[::-1], color=[look["colours"][int(weight < 0)] for weight in weights[::-1]])
    ax.set(xlabel="weight: late to the left, on time to the right")
    ax.grid(axis="x")
    return figure


PICTURES = (search, weights, plane, losses, gap, classes, pairs, calibration, top_features)


def draw(picture, folder):
    """Write a picture for both looks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, look in LOOKS.items():
        with mpl.rc_context(style(look)):
            picture(look).savefig(folder / f"{picture.__name__}-{name}.svg", metadata={"Date": None}, dpi=180)


def write(folder):
    """Draw what is not there yet, or older than this file."""
    for picture in PICTURES:
        drawn = folder / f"{picture.__name__}-dark.svg"
        if not drawn.exists() or drawn.stat().st_mtime < Path(__file__).stat().st_mtime:
            draw(picture, folder)


if __name__ == "__main__":
    for each in PICTURES:
        draw(each, ROOT / "docs" / "generated")
    draw(speed, ROOT / "docs" / "pictures")

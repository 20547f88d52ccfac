"""The plane of two costs: geometry, exact answers on degenerate data, limits, saving."""

import itertools
import os
import signal
import threading
import time

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

BOX = (10.0, 10.0)


def families():
    """Small data, most of it degenerate."""
    r = np.random.default_rng(0)
    n = 30
    y = np.where(r.random(n) < 0.4, 1, -1)
    third = r.standard_normal((10, 3))
    one = -np.ones(n, dtype=int)
    one[0] = 1
    return {
        "gauss": (r.standard_normal((n, 4)) + 0.5 * y[:, None], y),
        "duplicated": (np.r_[third, third, third], np.r_[y[:10], y[:10], y[:10]]),
        "contradictory": (np.r_[third, third, third], np.r_[y[:10], y[:10], -y[:10]]),
        "binary": ((r.random((n, 6)) < 0.4) * 1.0, y),
        "integer": (r.integers(-2, 3, (n, 3)).astype(float), y),
        "collinear": (np.outer(np.round(r.standard_normal(n), 1), [1.0, 2.0, 3.0]), y),
        "one feature": (r.integers(-5, 6, (n, 1)).astype(float), y),
        "all but one": (r.standard_normal((n, 4)), one),
        "all but one, integer": (r.integers(0, 3, (n, 3)).astype(float), one),
        "zero rows": (
            np.r_[np.zeros((5, 3)), r.standard_normal((15, 3))],
            np.r_[np.ones(3), -np.ones(2), y[:15]].astype(int),
        ),
        "wide": (r.standard_normal((12, 40)), np.r_[np.ones(5), -np.ones(7)].astype(int)),
    }


FAMILIES = families()


def signed(X, y, bias):
    dense = np.asarray(X.todense() if sp.issparse(X) else X, dtype=float)
    return np.where(y == np.unique(y)[1], 1.0, -1.0)[:, None] * np.c_[dense, np.full(len(y), bias)]


def kkt_residual(Z, alpha, cost):
    """Largest violation of the optimality conditions of one solution, from its dual variables alone."""
    margins = Z @ (Z.T @ alpha)
    low, high = alpha <= 1e-10 * np.maximum(cost, 1e-300), alpha >= cost * (1 - 1e-10)
    short = np.where(high, 0.0, np.maximum(0.0, 1.0 - margins))  # may not be left of the margin
    over = np.where(low, 0.0, np.maximum(0.0, margins - 1.0))  # may not be right of it
    box = np.maximum(0.0, np.maximum(-alpha, alpha - cost))
    return max(short.max(), over.max(), box.max())


def objective(Z, w, cost):
    return 0.5 * w @ w + cost @ np.maximum(0.0, 1.0 - Z @ w)


def check_complex(path):
    """What exact arithmetic promises, recomputed from the arrays alone."""
    V, first, corner, beyond = path.vertices, path.first.astype(int), path.corner, path.beyond
    edges, area = {}, 0.0
    for f in range(path.n_facets):
        ids = corner[first[f] : first[f + 1]].astype(int)
        assert len(ids) >= 3
        x, y = V[ids, 0], V[ids, 1]
        own = 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))
        assert own > -1e-12
        area += own
        for a, b, g in zip(ids, np.roll(ids, -1), beyond[first[f] : first[f + 1]], strict=True):
            edges[a, b] = f
            assert g != path.OPEN
    inner = [key for key in edges if key[::-1] in edges]
    n_edges = len(inner) // 2 + len(edges) - len(inner)
    assert abs(area / (path.box[0] * path.box[1]) - 1) < 1e-9
    assert path.n_vertices - n_edges + path.n_facets == 1  # Euler
    assert n_edges == path.n_edges
    border = V[[key[0] for key in edges if key[::-1] not in edges]]
    on_frame = (border[:, :2] == 0).any(axis=1) | (np.abs(border[:, :2] - np.array(path.box)) < 1e-12).any(axis=1)
    assert on_frame.all()  # what is not shared is the border of the box: no holes, no overlaps
    check_loops(path)


def check_loops(path):
    """The loop property of Wesierski16, eq. (19): around an inner vertex two event paths cross, so that four facets
    meet and each event is crossed once there and once back; going round leads back to the first facet's sets."""
    V, events, corner, first = path.vertices, path.events.astype(np.int64), path.corner, path.first.astype(int)
    before = np.arange(len(corner)) - 1
    before[first[:-1]] = first[1:] - 1
    facet = np.repeat(np.arange(path.n_facets), np.diff(first))
    inner = ~((V[:, :2] == 0).any(axis=1) | (np.abs(V[:, :2] - np.array(path.box)) < 1e-12).any(axis=1))
    around = {}
    for e in np.flatnonzero(inner[corner]):
        around.setdefault(int(corner[e]), []).append(int(e))
    for v in np.flatnonzero(inner):
        out = {int(facet[e]): e for e in around[int(v)]}  # each facet around the vertex, and its edge that leaves it
        at, seen, moves = next(iter(out)), [], []
        while at not in seen:
            seen.append(at)
            e = out[at]
            moves.append((events[e] // 4, _STATES[events[e] % 4]))
            assert events[before[e]] < 2**32 - 8
            at = int(path.beyond[e])
        assert at == seen[0]
        assert len(seen) == len(around[int(v)]) == 4
        rows = [row for row, _ in moves]
        assert rows[:2] == rows[2:]
        assert rows[0] != rows[1]
        assert all(moves[k][1] == moves[k + 2][1][::-1] for k in (0, 1))


_STATES = (("L", "M"), ("R", "M"), ("M", "L"), ("M", "R"))


@pytest.mark.parametrize("name", FAMILIES)
def test_facets_tile_the_box(name):
    X, y = FAMILIES[name]
    path = hinge.cost_path(X, y, box=BOX)
    assert not path.is_partial
    assert len(path.special) == 0
    assert path.stats["n_unmatched"] == 0
    check_complex(path)


@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_exact_at_random_points_and_vertices(name):
    X, y = FAMILIES[name]
    path = hinge.cost_path(X, y, box=BOX)
    points = np.random.default_rng(1).random((1000, 2)) * BOX
    points = np.r_[points, path.vertices[:, :2]]
    points = points[(points > 0).all(axis=1)]
    alpha = path.alpha(points[:, 0], points[:, 1])
    Z, signs = signed(X, y, 1.0), path.problem.signs
    cost = np.where(signs > 0, points[:, :1], points[:, 1:])
    residuals = [kkt_residual(Z, a, c) for a, c in zip(alpha, cost, strict=True)]
    assert max(residuals) < 1e-9
    assert path.certificate(points[:, 0], points[:, 1])["relative_gap"].max() < 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_joint_events_are_the_rows_that_change_around_a_vertex(name):
    X, y = FAMILIES[name]
    path = hinge.cost_path(X, y, box=BOX)
    around = {}
    for f in range(path.n_facets):
        for v in path.corner[path.first[f] : path.first[f + 1]].tolist():
            around.setdefault(v, []).append(f)
    sets = [path.sets(f) for f in range(path.n_facets)]
    expected = {}
    for v, facets in around.items():
        states = np.array([sets[f] for f in facets])
        changing = np.flatnonzero((states != states[0]).any(axis=0))
        point = path.vertices[v]
        if (point[:2] > 0).all() and (np.abs(point[:2] - BOX) > 1e-12).all():
            assert (len(changing), len(facets)) == (2, 4)
            # Between left (0) and margin (1), or margin and right (2).
            expected[v] = [2 * row + min(states[:, row]) for row in changing]
    vertices, paths = path.joint_events()
    assert dict(zip(vertices.tolist(), paths.tolist(), strict=True)) == expected
    assert len(vertices) == len(expected) > 0


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_across_vertices_are_a_search_over_edges_and_vertices(name):
    X, y = FAMILIES[name]
    path = hinge.cost_path(X, y, box=BOX)
    joint = set(path.joint_events()[0].tolist())
    edges = [range(path.first[f], path.first[f + 1]) for f in range(path.n_facets)]
    around = {}
    for f in range(path.n_facets):
        for e in edges[f]:
            around.setdefault(int(path.corner[e]), []).append(f)
    layer, queue = {0: 0}, [0]
    for f in queue:
        over = [int(path.beyond[e]) for e in edges[f] if path.beyond[e] < path.OPEN]
        across = [g for e in edges[f] if int(path.corner[e]) in joint for g in around[int(path.corner[e])]]
        for g in over + across:
            if g not in layer:
                layer[g] = layer[f] + 1
                queue.append(g)
    found = path.layers_across_vertices()
    assert found.tolist() == [layer[f] for f in range(path.n_facets)]
    assert (found <= path.layer).all()
    assert (path.layer <= 2 * found).all()


def assert_equals_certified_fits(path, points):
    """The objective at every point against a fit of its own, which knows nothing of the plane."""
    found = path.certificate(points[:, 0], points[:, 1])["primal"]
    for own, costs in zip(found, points, strict=True):
        fit = hinge._native.fit_costs(path.problem.native, tuple(costs), 1e-10, 1, None)
        assert fit["relative_gap"][0] <= 1e-10
        assert own == pytest.approx(fit["primal"][0], rel=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_objective_equals_a_certified_fit(name):
    X, y = FAMILIES[name]
    path = hinge.cost_path(X, y, box=BOX)
    points = np.random.default_rng(2).random((1000, 2)) * BOX
    assert_equals_certified_fits(path, points)
    for pos, neg in points[:4]:
        weight = {path.problem.classes[0]: neg, path.problem.classes[1]: pos}
        fit = hinge.LinearSVC(
            C=1.0, loss="hinge", intercept_scaling=1.0, class_weight=weight, tol=1e-10, max_iter=100_000
        )
        primal = fit.fit(X, y).certificate_.primal[0]
        assert path.certificate(pos, neg)["primal"] == pytest.approx(primal, rel=1e-9)


small_integers = st.integers(2, 4).flatmap(
    lambda d: st.lists(
        st.tuples(st.lists(st.integers(-2, 2), min_size=d, max_size=d), st.booleans()), min_size=2, max_size=9
    )
)


@given(small_integers, st.sampled_from([None, 1.0]), st.sampled_from([(0.5, 0.5), (3.0, 10.0)]))
def test_small_integer_data(rows, scaling, box):
    X = np.array([row for row, _ in rows], dtype=float)
    y = np.array([label for _, label in rows], dtype=int)
    y[0], y[1] = 0, 1
    path = hinge.cost_path(X, y, box=box, intercept_scaling=scaling)
    check_complex(path)
    points = path.vertices[:, :2]
    points = np.r_[points[(points > 0).all(axis=1)], np.random.default_rng(0).random((5, 2)) * box]
    alpha = path.alpha(points[:, 0], points[:, 1])
    Z = signed(X, y, scaling or 0.0)
    for a, (pos, neg) in zip(alpha, points, strict=True):
        assert kkt_residual(Z, a, np.where(y == 1, pos, neg)) < 1e-9


def test_any_number_of_threads_gives_the_same_bits():
    X, y = FAMILIES["gauss"]
    one, three = (hinge.cost_path(X, y, box=BOX, n_jobs=k) for k in (1, 3))
    for name in ("vertices", "first", "corner", "beyond", "events", "parent"):
        assert (getattr(one, name) == getattr(three, name)).all()


def test_start_changes_layers_only():
    X, y = FAMILIES["gauss"]
    origin, middle = hinge.cost_path(X, y, box=BOX), hinge.cost_path(X, y, box=BOX, start=(3.0, 2.0))
    check_complex(middle)
    assert middle.n_facets == origin.n_facets
    assert middle.facet(3.0, 2.0) == 0
    assert middle.n_layers < origin.n_layers


def test_sparse_and_dense_agree():
    X, y = FAMILIES["binary"]
    dense, sparse = hinge.cost_path(X, y, box=BOX), hinge.cost_path(sp.csr_matrix(X), y, box=BOX)
    assert dense.n_facets == sparse.n_facets
    assert np.allclose(dense.coef(2.0, 3.0), sparse.coef(2.0, 3.0), atol=1e-9)


def test_without_limit_the_box_is_contained():
    X, y = FAMILIES["integer"]
    path = hinge.cost_path(X, y, box=(np.inf, np.inf))
    assert not path.is_partial
    assert path.stats["n_unbounded"] > 0
    assert path.stats["n_unmatched"] == 0
    Z = signed(X, y, 1.0)
    for pos, neg in [(0.1, 0.2), (5.0, 7.0), (1e3, 10.0), (1e3, 2e3)]:
        assert kkt_residual(Z, path.alpha(pos, neg), np.where(y == 1, pos, neg)) < 1e-9


def test_location_agrees_with_the_polygons():
    X, y = FAMILIES["gauss"]
    path = hinge.cost_path(X, y, box=BOX)
    points = np.random.default_rng(3).random((300, 2)) * BOX
    for (x, z), f in zip(points, path.facet(points[:, 0], points[:, 1]), strict=True):
        polygon = path.polygon(f)[:, :2]
        ahead = np.roll(polygon, -1, axis=0) - polygon
        assert (ahead[:, 0] * (z - polygon[:, 1]) - ahead[:, 1] * (x - polygon[:, 0]) > -1e-9).all()
    assert path.facet(11.0, 1.0) == -1


def test_estimator_predicts_and_is_certified():
    X, y = FAMILIES["gauss"]
    labels = np.where(y > 0, "yes", "no")
    path = hinge.cost_path(X, labels, box=BOX)
    model = path.estimator(4.0, 2.0)
    assert model.certificate_.converged
    assert (model.predict(X) == path.predict(X, 4.0, 2.0)).all()
    again = hinge.LinearSVC(**model.get_params()).fit(X, labels)
    assert np.allclose(again.coef_, model.coef_, atol=1e-5)
    assert path.decision_function(X, [1.0, 2.0], [[1.0], [3.0], [4.0]]).shape == (3, 2, len(y))


def test_along_is_piecewise_linear():
    X, y = FAMILIES["gauss"]
    path = hinge.cost_path(X, y, box=BOX)
    line = path.along((0.5, 9.0), (8.0, 0.25))
    assert len(line) > 10
    assert (np.diff(line.t) >= 0).all()
    longest = int(np.diff(line.t).argmax())
    a, b = line.t[longest], line.t[longest + 1]
    middle = line.at([a + 0.1 * (b - a), 0.5 * (a + b), b - 0.1 * (b - a)])["coef"]
    assert np.allclose(middle[1], 0.5 * (middle[0] + middle[2]), atol=1e-9)
    ends = line.at([0.0, 1.0])["coef"]
    assert np.allclose(ends, path.coef([0.5, 8.0], [9.0, 0.25]), atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_ray_agrees_with_the_plane(name):
    X, y = FAMILIES[name]
    ray = hinge.cost_path(X, y, box=BOX, ray=(1.0, 2.0))
    path = hinge.cost_path(X, y, box=BOX)
    t = np.linspace(0.01, 1.0, 25)
    costs = ray.costs(t)
    found = ray.at(t)
    assert found["relative_gap"].max() < 1e-9
    assert np.allclose(found["primal"], path.certificate(costs[:, 0], costs[:, 1])["primal"], rtol=1e-9)
    sides = ray.sets(1.0)
    assert set(np.unique(sides)) <= {0, 1, 2}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_ray_from_a_fit_is_the_ray_from_the_origin(name):
    X, y = FAMILIES[name]
    whole = hinge.cost_path(X, y, box=BOX, ray=(1.0, 1.0))
    part = hinge.cost_path(X, y, box=BOX, ray=(1.0, 1.0), start=(0.5, 0.5))
    np.testing.assert_array_equal(part.begin, (0.5, 0.5))
    np.testing.assert_array_equal(part.end, whole.end)
    np.testing.assert_array_equal(part.sides, whole.sets(0.05))
    later = whole.t > 0.05
    np.testing.assert_array_equal(part.events, whole.events[later])
    np.testing.assert_allclose(part.costs(part.t), whole.costs(whole.t[later]), rtol=1e-6)


def test_save_and_load(tmp_path):
    X, y = FAMILIES["binary"]
    for data in (X, sp.csr_matrix(X)):
        path = hinge.cost_path(data, y, box=BOX)
        path.save(tmp_path / "plane.npz")
        again = hinge.CostPath.load(tmp_path / "plane.npz")
        assert again.n_facets == path.n_facets
        assert again.ended_by == "complete"
        assert (again.coef([1.0, 2.0], 3.0) == path.coef([1.0, 2.0], 3.0)).all()
        assert os.listdir(tmp_path) == ["plane.npz"]


def test_damaged_files_are_refused(tmp_path):
    file = tmp_path / "plane.npz"
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="not a saved cost path"):
        hinge.CostPath.load(file)
    file.unlink()
    X, y = FAMILIES["integer"]
    hinge.cost_path(X, y).save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    for name in ("plane_corner", "plane_beyond", "plane_parent", "plane_first", "plane_events"):
        bad = arrays | {name: arrays[name] + np.array(10**6, dtype=arrays[name].dtype)}
        np.savez(file, **bad)
        with pytest.raises(ValueError, match="do not describe a plane"):
            hinge.CostPath.load(file)


def test_limits():
    X, y = FAMILIES["gauss"]
    with pytest.raises(hinge.RegionLimitError, match="more than max_regions = 50 facets") as caught:
        hinge.cost_path(X, y, box=BOX, max_regions=50)
    part = caught.value.path
    assert part.is_partial
    assert 0 < part.n_facets <= 50
    assert part.certificate(0.001, 0.001)["relative_gap"] < 1e-9
    with pytest.raises(ValueError, match="outside of the explored part"):
        part.coef(9.0, 9.0)
    with pytest.warns(hinge.PartialPathWarning, match="max_regions"):
        partial = hinge.cost_path(X, y, box=BOX, max_regions=50, on_limit="partial")
    assert partial.n_facets == part.n_facets
    grid = hinge.cost_path(X, y, box=BOX, max_regions=50, on_limit="grid")
    full = hinge.cost_path(X, y, box=BOX)
    assert np.allclose(grid.coef([1.0, 9.0], [9.0, 9.0]), full.coef([1.0, 9.0], [9.0, 9.0]), atol=1e-4)
    with pytest.raises(ValueError, match="outside of the box"):
        grid.coef(11.0, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"box": (0.0, 1.0)}, "box must hold two numbers above 0"),
        ({"box": (-1.0, 1.0)}, "box must hold two numbers above 0"),
        ({"box": 3.0}, "box must be a pair of numbers"),
        ({"box": (np.nan, 1.0)}, "box must be a pair of numbers"),
        ({"start": (2.0, 0.5)}, "start must be a point of the box"),
        ({"start": (0.0, 0.5)}, "start must be a point of the box"),
        ({"ray": (0.0, 1.0)}, "ray must hold two finite numbers above 0"),
        ({"ray": (1.0, 1.0), "box": (np.inf, np.inf)}, "finite box"),
        ({"ray": (1.0, 1.0), "start": (1.0, 1.0)}, "start must be a point of the box off its border"),
        ({"ray": (1.0, 1.0), "start": (0.0, 0.5)}, "start must be a point of the box off its border"),
        ({"max_regions": 0}, "max_regions must be an integer of at least 1"),
        ({"on_limit": "shrug"}, "on_limit must be one of"),
        ({"intercept_scaling": -1.0}, "intercept_scaling must be a finite number above 0"),
    ],
)
def test_bad_parameters(change, message):
    X, y = FAMILIES["gauss"]
    with pytest.raises(ValueError, match=message):
        hinge.cost_path(X, y, **change)


def test_bad_input():
    X, y = FAMILIES["gauss"]
    with pytest.raises(ValueError, match="one class only"):
        hinge.cost_path(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="exactly 2"):
        hinge.cost_path(X, np.arange(len(y)) % 3)
    spoiled = X.copy()
    spoiled[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3, column 2"):
        hinge.cost_path(spoiled, y)
    path = hinge.cost_path(X, y)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="costs must be finite and at least 0"):
            path.coef(bad, 0.5)
    with pytest.raises(ValueError, match="features"):
        path.predict(X[:, :2], 0.5, 0.5)


def test_interrupt_keeps_the_explored_part():
    r = np.random.default_rng(0)
    X, y = r.standard_normal((400, 12)), np.where(r.random(400) < 0.5, 1, -1)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.warns(hinge.PartialPathWarning, match="interrupted after"):
        path = hinge.cost_path(X, y, box=(100.0, 100.0), max_regions=50_000_000)
    assert time.monotonic() - began < 5
    assert path.ended_by == "interrupt"
    point = path.vertices[path.corner[path.first[path.n_facets // 2]], :2]
    assert path.certificate(*point)["relative_gap"] < 1e-9


def brute_errors(path, X, y, points):
    called = path.predict(X, points[:, 0], points[:, 1])
    first, second = path.problem.classes
    return ((called == second) & (y == first)).sum(axis=1), ((called == first) & (y == second)).sum(axis=1)


@pytest.mark.parametrize("name", ["gauss", "integer"])
def test_score_surface_is_exact(name):
    X, y = FAMILIES[name]
    held = np.random.default_rng(5).standard_normal((25, X.shape[1])) * 1.3
    labels = np.where(np.random.default_rng(6).random(25) < 0.5, 1, -1)
    path = hinge.cost_path(X, y, box=BOX)
    surface = path.score_surface(held, labels)
    assert surface.areas.sum() == pytest.approx(100.0, rel=1e-9)
    inside = np.flatnonzero(surface.areas > 1e-7)[::7]
    centres = np.array([surface.corners[surface.first[k] : surface.first[k + 1]].mean(axis=0) for k in inside])
    positives, negatives = brute_errors(path, held, labels, centres)
    # The cells belong to the perturbed problem, the predictions do not: a line may be off by the perturbation.
    differ = (positives != surface.false_positives[inside]) | (negatives != surface.false_negatives[inside])
    assert differ.mean() < 0.01
    best = surface.minimum(1.0, 2.0)
    points = np.random.default_rng(7).random((2000, 2)) * BOX
    positives, negatives = brute_errors(path, held, labels, points)
    assert best.value <= (positives + 2.0 * negatives).min() / 25 + 1e-12
    at = brute_errors(path, held, labels, best.costs[None])
    assert (at[0] + 2.0 * at[1])[0] / 25 == pytest.approx(best.value)
    rates = surface.roc()
    assert (np.diff(rates, axis=0) > 0).all()


def test_select_costs_is_never_worse_than_a_grid():
    X, y = FAMILIES["gauss"]
    chosen = hinge.select_costs(X, y, cv=3, box=BOX, false_negative=2.0, grid=12)
    assert chosen.error <= chosen.grid_error + 1e-12
    total = 0.0
    from sklearn.model_selection import StratifiedKFold

    splits = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    for path, (_, test) in zip(chosen.paths, splits, strict=True):
        positives, negatives = brute_errors(path, X[test], y[test], np.array([[chosen.c_pos, chosen.c_neg]]))
        total += positives[0] + 2.0 * negatives[0]
    assert total / len(y) == pytest.approx(chosen.error)


def test_overlay_agrees_with_random_search():
    X, y = FAMILIES["integer"]
    chosen = hinge.select_costs(X, y, cv=3, box=(1.0, 1.0))
    points = np.random.default_rng(8).random((3000, 2))
    sums = np.zeros(len(points))
    for surface, path in zip(chosen.surfaces, chosen.paths, strict=True):
        facets = path.facet(points[:, 0], points[:, 1])
        assert (facets >= 0).all()
        sums += lookup(surface, points)
    assert chosen.error * len(y) <= sums.min() + 1e-9


def lookup(surface, points):
    """Errors of the cell that holds each point, cell by cell."""
    out = np.full(len(points), np.nan)
    error = surface.error() * (surface.n_positive + surface.n_negative)
    for k, (a, b) in enumerate(itertools.pairwise(surface.first.astype(int))):
        polygon = surface.corners[a:b]
        ahead = np.roll(polygon, -1, axis=0) - polygon
        off = points[:, None] - polygon
        inside = (ahead[:, 0] * off[..., 1] - ahead[:, 1] * off[..., 0] >= 0).all(axis=1)
        out[inside] = error[k]
    return np.nan_to_num(out, nan=np.inf)


def test_pictures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = FAMILIES["gauss"]
    path = hinge.cost_path(X, y, box=BOX)
    surface = path.score_surface(X, y)
    for draw in (path.plot, lambda: path.plot_multiplier(0), surface.plot, surface.plot_roc):
        ax = draw()
        ax.figure.savefig(tmp_path / "picture.png")
        assert ax.has_data()
        plt.close(ax.figure)


def test_pieces_of_a_multiplier_have_the_corners_of_their_facets(monkeypatch):
    """All of them in one array: matplotlib would fill shorter pieces of a list up with memory nobody wrote."""
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d import art3d

    given = []

    class Recorded(art3d.Poly3DCollection):
        def __init__(self, verts, **options):
            given.append(verts)
            super().__init__(verts, **options)

    monkeypatch.setattr(art3d, "Poly3DCollection", Recorded)
    path = hinge.cost_path(*FAMILIES["gauss"], box=BOX)
    ax = path.plot_multiplier(3)
    (pieces,) = given
    assert isinstance(pieces, np.ndarray)
    finite = [path.polygon(f) for f in range(path.n_facets)]
    finite = [p[:, :2] for p in finite if len(p) > 2 and (p[:, 2] > 0).all()]
    assert len(pieces) == len(finite)
    assert len({len(p) for p in finite}) > 1
    for piece, polygon in zip(pieces, finite, strict=True):
        np.testing.assert_array_equal(np.unique(piece[:, :2], axis=0), np.unique(polygon, axis=0))
        np.testing.assert_allclose(piece[:, 2], path.alpha(piece[:, 0], piece[:, 1])[:, 3], atol=1e-12)
    plt.close(ax.figure)


def test_walks_through_all_of_german(real):
    """1,000 rows whose features are rounded to six digits: rows on the margin nearly depend on each other."""
    X, y, *_ = real("german")
    assert 1e5 < hinge.estimate_regions(X, y, box=(10.0, 10.0)) < 1e8
    ray = hinge.cost_path(X, y, box=(10.0, 10.0), ray=(1.0, 3.0))
    assert ray.at(np.geomspace(1e-3, 1.0, 5))["relative_gap"].max() < 1e-9


def test_a_ray_leaps_over_a_circle(real):
    """Binary rows depend on each other exactly: from this start, rounding leads the walk round a circle at C = 0.24."""
    X, y, *_ = real("a9a")
    X, y, C = X[:20_000].astype(np.float64), y[:20_000], 2.0**-10
    ray = hinge.cost_path(X, y, ray=(1.0, 1.0), start=(C, C))
    assert ray.t[-1] > 0.9
    assert len(ray) < 20_000
    assert ray.at(np.linspace(0, 1, 9))["relative_gap"].max() < 1e-9
    steps = dict(enumerate(ray.sides))
    for row, event, to in zip(ray.rows, ray.events, ray.to, strict=True):
        assert steps[int(row)] == (0, 2, 1, 1)[event % 4]  # every event leaves the state that the one before has led to
        steps[int(row)] = to


@pytest.mark.parametrize(
    ("name", "rows", "limit"), [("german", 60, 10.0), ("pcmac", 40, 1.0), ("a9a", 50, 1.0), ("w8a", 60, 1.0)]
)
def test_real_samples(real, name, rows, limit):
    X, y, *_ = real(name)
    y = np.where(y == y.max(), 1, -1)
    picked = np.random.default_rng(0).permutation(X.shape[0])
    ids = np.r_[picked[y[picked] > 0][: rows // 3], picked[y[picked] < 0][: rows - rows // 3]]
    X, y = X[ids].astype(np.float64), y[ids]
    path = hinge.cost_path(X, y, box=(limit, limit))
    check_complex(path)
    points = np.r_[np.random.default_rng(1).random((1000, 2)) * limit, path.vertices[:, :2]]
    points = points[(points > 0).all(axis=1)]
    Z = signed(X, y, 1.0)
    alpha = path.alpha(points[:, 0], points[:, 1])
    assert max(kkt_residual(Z, a, np.where(y > 0, *p)) for a, p in zip(alpha, points, strict=True)) < 1e-9
    assert_equals_certified_fits(path, points[:20])  # descent takes up to a third of a second for each on w8a


def test_select_costs_takes_any_integer_as_number_of_folds():
    X, y = FAMILIES["integer"]
    chosen = [hinge.select_costs(X, y, cv=cv, box=(0.5, 0.5)) for cv in (3, np.int64(3))]
    assert chosen[0].error == chosen[1].error
    np.testing.assert_array_equal(chosen[0].grid_costs, chosen[1].grid_costs)

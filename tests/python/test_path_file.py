"""Planes of two costs in files, and estimates of their size."""

import io
import os
import signal
import threading

import hinge
import numpy as np
import pytest
import scipy.sparse as sp

BOX = (10.0, 10.0)
ARRAYS = ("vertices", "first", "corner", "beyond", "events", "parent", "layer")


@pytest.fixture
def data():
    r = np.random.default_rng(0)
    y = np.where(r.random(30) < 0.4, "yes", "no")
    return r.standard_normal((30, 4)) + 0.5 * (y == "yes")[:, None], y


def test_a_plane_in_a_file_is_the_plane_in_memory(data, tmp_path):
    X, y = data
    memory = hinge.cost_path(X, y, box=BOX)
    for rows in (X, sp.csr_matrix(X)):
        plane = hinge.cost_path(rows, y, box=BOX, file=tmp_path / "plane")
        assert isinstance(plane, hinge.CostPathFile)
        assert os.listdir(tmp_path) == ["plane"]
        assert (plane.ended_by, plane.is_partial, plane.box) == ("complete", False, BOX)
        assert (plane.n_facets, plane.n_layers) == (memory.n_facets, memory.n_layers)
        assert (plane.n_vertices, plane.n_edges, len(plane.special)) == (memory.n_vertices, memory.n_edges, 0)
    loaded = plane.load()
    assert all((getattr(loaded, name) == getattr(memory, name)).all() for name in ARRAYS)
    assert loaded.stats["area"] == pytest.approx(100.0, rel=1e-12)


def test_layers_one_at_a_time(data, tmp_path):
    X, y = data
    plane = hinge.cost_path(X, y, box=BOX, file=tmp_path / "plane")
    facets = vertices = edges = 0
    for layer in plane.layers():
        assert (layer["first_facet"], layer["first_vertex"]) == (facets, vertices)
        facets += len(layer["parent"])
        vertices += len(layer["vertices"])
        edges += len(layer["events"])
        assert layer["lengths"].sum() == len(layer["events"]) == len(layer["beyond"]) == len(layer["corner"])
        assert (layer["corner"] < vertices).all()
    assert (facets, vertices) == (plane.n_facets, plane.n_vertices)
    assert edges == len(plane.load().events)
    with pytest.raises(ValueError, match="layer must be below"):
        plane.layer(plane.n_layers)


def test_answers_without_facets(data, tmp_path):
    X, y = data
    memory, plane = hinge.cost_path(X, y, box=BOX), hinge.cost_path(X, y, box=BOX, file=tmp_path / "plane")
    pos, neg = np.random.default_rng(1).random((2, 50)) * 10
    assert plane.certificate(pos, neg)["relative_gap"].max() < 1e-9
    assert np.allclose(plane.coef(pos, neg), memory.coef(pos, neg), atol=1e-9)
    assert plane.estimator(4.0, 1.0).classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="outside of the box"):
        plane.coef(11.0, 1.0)


def test_the_part_explored_is_in_the_file(data, tmp_path):
    X, y = data
    file = tmp_path / "plane"
    with pytest.raises(hinge.RegionLimitError, match="more than max_regions = 200 facets") as caught:
        hinge.cost_path(X, y, box=BOX, max_regions=200, file=file)
    part = caught.value.path
    assert part.ended_by == "max_regions"
    assert 0 < part.n_facets <= 200
    loaded = part.load()
    assert (loaded.beyond == loaded.OPEN).any()
    memory = hinge.cost_path(X, y, box=BOX, max_regions=200, on_limit="grid")
    assert np.allclose(part.coef(9.0, 9.0), memory.coef(9.0, 9.0), atol=1e-4)
    with pytest.warns(hinge.PartialPathWarning):
        assert hinge.cost_path(X, y, box=BOX, max_regions=200, file=file, on_limit="partial").is_partial


def test_interrupt_leaves_a_whole_file(tmp_path):
    r = np.random.default_rng(0)
    X, y = r.standard_normal((400, 12)), np.where(r.random(400) < 0.5, 1, -1)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.warns(hinge.PartialPathWarning, match="interrupted after"):
        plane = hinge.cost_path(X, y, box=(100.0, 100.0), max_regions=50_000_000, file=tmp_path / "plane")
    assert plane.ended_by == "interrupt"
    assert os.listdir(tmp_path) == ["plane"]
    assert plane.load().n_facets == plane.n_facets > 0


def test_damage_and_misuse(data, tmp_path):
    X, y = data
    file = tmp_path / "plane"
    with pytest.raises(ValueError, match="file has no meaning for a ray"):
        hinge.cost_path(X, y, ray=(1.0, 1.0), file=file)
    with pytest.raises(FileNotFoundError):
        hinge.cost_path(X, y, file=tmp_path / "missing" / "plane")
    with pytest.raises(FileNotFoundError):
        hinge.CostPathFile(file)
    with pytest.raises(ValueError, match="dtype object cannot be saved"):
        hinge.cost_path(X, y.astype(object), file=file)
    assert os.listdir(tmp_path) == []
    hinge.cost_path(X, y, file=file)
    good = file.read_bytes()
    for bad in (b"", b"something else", good[:-9], good[:500] + b"?" + good[501:]):
        file.write_bytes(bad)
        with pytest.raises(ValueError, match="not an intact cost-plane file"):
            hinge.CostPathFile(file).load()


def test_estimates(data, caplog):
    X, y = data
    for box in (BOX, (0.1, 1.0)):
        known = hinge.cost_path(X, y, box=box).n_facets
        assert 1 / 4 < hinge.estimate_regions(X, y, box=box) / known < 4
    with pytest.raises(ValueError, match="box must be two finite numbers above 0"):
        hinge.estimate_regions(X, y, box=(np.inf, 1.0))
    with caplog.at_level("INFO", logger="hinge"):
        hinge.cost_path(X, y, box=BOX)
    assert "facets expected" in caplog.text


def damaged(raw, arrays):
    """Files that are none, cut, changed, or lack an array or hold a wrong one."""
    yield from (b"", raw[:1], raw[: len(raw) // 2], raw[:-1], b"PK\x03\x04" + bytes(300))
    for at in range(0, len(raw), 7):
        yield raw[:at] + bytes([raw[at] ^ 0x5A]) + raw[at + 1 :]
    for name in arrays:
        others = {key: value for key, value in arrays.items() if key != name}
        for left in (others, {**others, name: np.array([object()], dtype=object)}, {**others, name: np.array("?")}):
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **left)
            yield buffer.getvalue()


def test_damage_is_one_error_that_names_the_file(data, tmp_path):
    X, y = data
    path = tmp_path / "plane.npz"
    hinge.cost_path(X[:8], y[:8], box=BOX).save(path)
    raw = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    messages = []
    for changed in damaged(raw, arrays):
        path.write_bytes(changed)
        try:
            hinge.CostPath.load(path)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert [message for message in messages if not message.startswith(f"{path} is not a saved cost path: ")] == []
    with pytest.raises(FileNotFoundError):
        hinge.CostPath.load(tmp_path / "no such file")

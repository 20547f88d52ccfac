"""What a store keeps of its sources: width, names of columns; and the memory that counting columns takes."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import BlockStore, LinearSVC, iter_predictions
from hinge._sources import _counted

pd = pytest.importorskip("pandas")


@pytest.fixture
def data():
    g = np.random.default_rng(0)
    X = sp.random(200, 60, density=0.2, format="csr", random_state=g)
    X.data[X.indices >= 50] = 0
    X.eliminate_zeros()
    return X, (g.random(200) < 0.5).astype(int)


@pytest.mark.parametrize("relabel", [True, False])
@pytest.mark.parametrize("kind", ["iterator", "callable", "npz"])
def test_parts_keep_their_width(data, tmp_path, kind, relabel):
    X, y = data
    parts = [(X[:100], y[:100]), (X[100:], y[100:])]
    wide = [parts[0], (sp.csr_matrix((100, 61)), y[100:])]

    def source(parts):
        if kind != "npz":
            return iter(parts) if kind == "iterator" else lambda: iter(parts)
        for k, (Z, z) in enumerate(parts):
            arrays = {"data": Z.data, "indices": Z.indices, "indptr": Z.indptr, "shape": Z.shape}
            np.savez(tmp_path / f"{k}.npz", y=z, **arrays)
        return [tmp_path / "0.npz", tmp_path / "1.npz"]

    store = BlockStore.build(source(parts), tmp_path / "x", relabel=relabel)
    assert store.n_features == 60
    LinearSVC(C=0.01).fit(store).predict(X)
    with pytest.raises(ValueError, match=r"has 61 columns, the first part of the source has 60: give n_features"):
        BlockStore.build(source(wide), tmp_path / "x", relabel=relabel)
    assert BlockStore.build(source(wide), tmp_path / "x", relabel=relabel, n_features=70).n_features == 70


@pytest.mark.parametrize("kind", ["pair", "iterator", "callable"])
@pytest.mark.parametrize("relabel", [True, False])
def test_names_of_columns_are_kept(tmp_path, kind, relabel):
    g = np.random.default_rng(0)
    frame = pd.DataFrame(g.normal(size=(80, 3)), columns=["a", "b", "c"])
    y = (frame["a"] > 0).to_numpy().astype(int)
    parts = [(frame[:40], y[:40]), (frame[40:], y[40:])]
    source = {"pair": (frame, y), "iterator": iter(parts), "callable": lambda: iter(parts)}[kind]
    store = BlockStore.build(source, tmp_path / "x", relabel=relabel)
    assert store.feature_names.tolist() == ["a", "b", "c"]
    model, memory = LinearSVC(tol=1e-8).fit(store), LinearSVC(tol=1e-8).fit(frame, y)
    assert model.feature_names_in_.tolist() == memory.feature_names_in_.tolist()
    assert (model.predict(frame) == memory.predict(frame)).all()
    assert (memory.predict(store) == memory.predict(frame)).all()
    moved = frame[["c", "b", "a"]]
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(moved)
    other = BlockStore.build((moved, y), tmp_path / "y", relabel=relabel)
    for source in (other, (moved, y)):
        with pytest.raises(ValueError, match=r"column 0 of the \w+ is 'c', in the fit it was 'a'"):
            next(iter_predictions(model, source))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(other)
    with pytest.warns(UserWarning, match="the store does not have feature names"):
        model.predict(BlockStore.build((frame.to_numpy(), y), tmp_path / "z"))
    with pytest.warns(UserWarning, match="the store has feature names"):
        LinearSVC().fit(frame.to_numpy(), y).predict(store)
    with pytest.raises(ValueError, match="item 1 has other names of columns"):
        BlockStore.build(iter([parts[0], (moved[40:], y[40:])]), tmp_path / "x", relabel=relabel)
    given = BlockStore.build((frame, y), tmp_path / "x", feature_names="xyz")
    assert given.feature_names.tolist() == ["x", "y", "z"]
    with pytest.raises(ValueError, match="n_features must be 3, the number of names of columns, got 5"):
        BlockStore.build((frame, y), tmp_path / "x", n_features=5)


def test_counts_are_those_of_all_entries():
    g = np.random.default_rng(0)
    for size, width in ((1000, 50), (10, 5000), (0, 5)):
        indices = g.integers(width, size=size)
        X = sp.csr_matrix((np.ones(size), indices, [0, size]), shape=(1, width))
        total = _counted(_counted(np.zeros(0, dtype=np.uint64), X), X)
        np.testing.assert_array_equal(total, 2 * np.bincount(indices))
        dense = _counted(np.zeros(0, dtype=np.uint64), X.toarray())
        np.testing.assert_array_equal(dense, (X.toarray() != 0).sum(axis=0))


WIDE = """
    import resource, sys
    import numpy as np, scipy.sparse as sp
    from hinge import BlockStore, load_svmlight

    path = sys.argv[1]
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    columns = np.r_[np.arange(7), 2**31 - 3].astype(np.int32)
    X = sp.csr_matrix((np.ones(8), columns, np.arange(9, dtype=np.int32)), shape=(8, 2**31 - 2))
    for source in ((X, np.arange(8) % 2), iter([(X, np.arange(8) % 2)])):
        store = BlockStore.build(source, path, n_jobs=1)
        assert store.n_features == 2**31 - 2
        Z, y = store.to_csr(n_jobs=1)
        assert (Z.indices == columns).all() and (y == np.arange(8) % 2).all()
    for column, expected in ((2_000_000_000, ""), (9_000_000_000, "column 8999999999: the column is outside")):
        with open(path + ".svm", "w") as file:
            file.write(f"1 1:1\\n-1 {column}:1\\n")
        try:
            print(BlockStore.build(path + ".svm", path, n_jobs=1).n_features)
        except ValueError as error:
            assert expected and expected in str(error), error
            print("refused")
"""


def test_wide_data_are_stored_in_bounded_memory(tmp_path):
    call = [sys.executable, "-c", textwrap.dedent(WIDE), str(tmp_path / "x")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["2000000000", "refused"], done.stderr

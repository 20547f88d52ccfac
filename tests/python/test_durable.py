"""Files that are in the way of files to be written are kept, and writers of one file do not harm each other."""

import os
import subprocess
import sys
import textwrap

import hinge
import numpy as np
import pytest
from hinge import BlockStore, CostPath, LinearSVC, cli, cost_path, demo, select_C
from hinge._durable import drafted

fcntl = pytest.importorskip("fcntl")

TEXT = "1 1:1 2:3\n-1 2:1\n1 1:2\n-1 2:2 3:1\n"


@pytest.fixture
def data():
    g = np.random.default_rng(0)
    X = g.normal(size=(60, 4))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def plane(data):
    X, y = data
    return cost_path(X[:20], y[:20], box=(1, 1))


def draw(path):
    """A search of which a demonstration draws the picture."""
    pytest.importorskip("matplotlib")
    g = np.random.default_rng(0)
    X = g.normal(size=(60, 4))
    demo.draw(demo.PlainConsole(), select_C(X, (X[:, 0] > 0).astype(int), cv=3), os.fspath(path))


@pytest.fixture
def given(data, plane, tmp_path_factory):
    """What the writers need: X, y, a plane, a store."""
    return (*data, plane, BlockStore.build(data, tmp_path_factory.mktemp("given") / "store", n_blocks=2))


BLOCKS = {"loss": "hinge", "memory_budget": "20MB", "block_options": {"in_memory": False}}
WRITERS = {
    "store": lambda path, X, y, plane, store: BlockStore.build((X, y), path, n_blocks=2),
    "journal": lambda path, X, y, plane, store: select_C(X, y, cv=2, Cs=[0.1, 1.0], resume=path),
    "checkpoint": lambda path, X, y, plane, store: LinearSVC(**BLOCKS, checkpoint=path).fit(store),
    "plane file": lambda path, X, y, plane, store: cost_path(X[:20], y[:20], box=(1, 1), file=path),
    "saved plane": lambda path, X, y, plane, store: plane.save(path),
    "picture": lambda path, X, y, plane, store: draw(path),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_only_files_of_the_same_kind_are_replaced(kind, given, tmp_path):
    def write(path):
        WRITERS[kind](path, *given)

    path = tmp_path / "x"
    path.write_text("1 1:1\n")
    with pytest.raises((FileExistsError, ValueError), match=r"file there is not|is not the journal|no checkpoint"):
        write(path)
    assert path.read_text() == "1 1:1\n"
    path.write_text("")
    write(path)
    first = path.read_bytes()
    assert len(first) > 30
    write(path)
    assert not [name for name in os.listdir(tmp_path) if name.endswith((".partial", ".tmp", ".new"))]
    with pytest.raises((IsADirectoryError, FileNotFoundError)):
        write(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="expected a file, found a device, a pipe or a socket"):
        write(pipe)
    with pytest.raises(FileExistsError, match="expected a file, found a device, a pipe or a socket"):
        write("/dev/full")


def test_a_plane_and_a_picture_of_others_are_told_from_ours(data, plane, tmp_path):
    pictures = pytest.importorskip("matplotlib.figure")
    np.savez_compressed(tmp_path / "x.npz", format=np.array(1), other=np.zeros(3))
    with pytest.raises(FileExistsError, match="is not a saved cost path"):
        plane.save(tmp_path / "x.npz")
    figure = pictures.Figure()
    figure.savefig(tmp_path / "x.png")
    with pytest.raises(FileExistsError, match="is not a picture that hinge drew"):
        draw(tmp_path / "x.png")
    plane.save(tmp_path / "plane")
    assert CostPath.load(tmp_path / "plane").n_facets == plane.n_facets


def test_overwrite_replaces_a_file_but_never_a_source(data, tmp_path):
    path = tmp_path / "x"
    path.write_text(TEXT)
    (tmp_path / "soft").symlink_to(path)
    os.link(path, tmp_path / "hard")
    for target in (path, tmp_path / "soft", tmp_path / "hard"):
        with pytest.raises(FileExistsError, match="the file to be written is a source"):
            BlockStore.build([path], target, overwrite=True)
        with pytest.raises(FileExistsError, match="a source"):
            BlockStore.build(target, path)
    assert path.read_text() == TEXT
    assert BlockStore.build(data, path, overwrite=True).n_samples == 60
    assert (tmp_path / "hard").read_text() == TEXT
    with pytest.raises(ValueError, match="overwrite must be True or False"):
        BlockStore.build(data, path, overwrite="yes")
    np.save(tmp_path / "X.npy", data[0])
    np.save(tmp_path / "y.npy", data[1])
    with pytest.raises(FileExistsError, match="a source"):
        BlockStore.build([(tmp_path / "X.npy", tmp_path / "y.npy")], tmp_path / "y.npy", overwrite=True)


def test_a_forgotten_store_keeps_the_last_source(tmp_path, capsys):
    parts = [tmp_path / f"part-{k}.svm" for k in range(3)]
    for part in parts:
        part.write_text(TEXT)
    names = [os.fspath(part) for part in parts]
    assert cli.main(["blocks", "build", *names]) == 1
    assert "part-2.svm: the file there is not a block store and is kept" in capsys.readouterr().err
    assert cli.main(["blocks", "build", names[0], names[0], "--force"]) == 1
    assert all(part.read_text() == TEXT for part in parts)
    assert cli.main(["blocks", "build", *names, "--force"]) == 0
    assert BlockStore(parts[2]).n_samples == 8


def test_a_failed_writing_leaves_the_old_file(tmp_path, plane):
    plane.save(tmp_path / "x")
    before = (tmp_path / "x").read_bytes()

    def fail():
        with drafted(tmp_path / "x", "saved_plane") as file:
            file.write(b"PK")
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        fail()
    assert (tmp_path / "x").read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]
    with drafted(tmp_path / "x", "saved_plane"), pytest.raises(OSError, match="another process is writing"):
        plane.save(tmp_path / "x")


@pytest.mark.parametrize("kind", ["journal", "checkpoint"])
def test_a_journal_and_a_checkpoint_have_one_user_at_a_time(kind, given, tmp_path):
    path = tmp_path / "x"
    WRITERS[kind](path, *given)
    before = path.read_bytes()
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match=r"another (search|training) is using it"):
            WRITERS[kind](path, *given)
    assert path.read_bytes() == before
    WRITERS[kind](path, *given)


RIVAL = """
    import sys, time
    import numpy as np
    from hinge import BlockStore

    X = np.random.default_rng(0).normal(size=(60, 8))
    y = (X[:, 0] > 0).astype(int)
    end, built = time.monotonic() + 2, 0
    while time.monotonic() < end:
        try:
            BlockStore.build((X, y), sys.argv[1], n_blocks=2, n_jobs=1)
            built += 1
        except OSError as error:
            assert "another process is writing" in str(error), error
        BlockStore(sys.argv[1]).verify(n_jobs=1)
    print(built)
"""


def test_rivals_never_harm_a_published_store(data, tmp_path):
    BlockStore.build(data, tmp_path / "x", n_blocks=2)
    call = [sys.executable, "-c", textwrap.dedent(RIVAL), os.fspath(tmp_path / "x")]
    rivals = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    built = [int(rival.communicate(timeout=60)[0] or -1) for rival in rivals]
    assert [rival.returncode for rival in rivals] == [0, 0, 0]
    assert sum(built) > 0
    assert os.listdir(tmp_path) == ["x"]
    hinge.BlockStore(tmp_path / "x").verify()

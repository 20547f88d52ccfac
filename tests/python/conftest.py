"""Hypothesis profiles, and real data where it is at hand.

``HYPOTHESIS_PROFILE=slow`` draws more examples. ``HINGE_DATA`` names the folder of real sets (default:
``../shared/data`` beside the repository); tests that need a set which is not there are skipped.
"""

import functools
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("slow", settings.get_profile("fast"), max_examples=500, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def _data_folder():
    return Path(os.environ.get("HINGE_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def _sets_module():
    """``sets.py`` of the data folder, imported without leaving a cache file there."""
    path = _data_folder() / "sets.py"
    if not path.is_file():
        pytest.skip(f"no real data: {path} is missing, set HINGE_DATA")
    spec = importlib.util.spec_from_file_location("hinge_test_sets", path)
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture(scope="session")
def real():
    """A function from the name of a real set to (X_train, y_train, X_test, y_test); skips where the set is absent."""

    @functools.cache
    def load(name):
        try:
            return _sets_module().load(name)
        except FileNotFoundError as error:
            pytest.skip(f"no set {name}: {error}")

    return load


@pytest.fixture(scope="module")
def clusters():
    """Clusters for the tests of a file, none before one is asked for."""
    from clusters import Clusters

    with Clusters() as found:
        yield found


@pytest.fixture
def client(clusters):
    """The client of a cluster of two workers, both of which are there."""
    return clusters.client()

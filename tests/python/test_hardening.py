"""Small versions of ``make hardening``: the scripts of ``tests/hardening/`` find nothing, and say how much."""

import os
import re
import subprocess
import sys

import pytest
from source_code import ROOT

SCRIPTS = {
    "kills of a streamed plane": ("kills.py", "--kills", "3", "--only", "streamed plane"),
    "interrupted reads": ("kills.py", "--kills", "1", "--only", "interrupted reads"),
    "two searches on one journal": ("kills.py", "--kills", "5", "--only", "rivals"),
    "stores that vanish": ("kills.py", "--only", "vanishing"),
    "threads and processes": ("processes.py", "--rounds", "3"),
    "extreme numbers": ("extremes.py", "--cases", "60"),
    "overlapping intervals": ("overlap.py", "--minutes", "0.05"),
    "broken matrices": ("triples.py", "--cases", "1500"),
    "hostile tables": ("tables.py", "--cases", "800"),
    "workers of a cluster": ("cluster.py", "--kills", "1", "--clients", "0", "--rows", "3000"),
    "budgets of memory": ("memory.py", "--step", "0", "--shapes", "1"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="forks, kills and reads /proc")
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_find_nothing(name):
    script, *arguments = SCRIPTS[name]
    call = [sys.executable, os.fspath(ROOT / "tests/hardening" / script), *arguments]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]", done.stdout), "it says nothing"

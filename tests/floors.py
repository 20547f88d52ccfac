"""Print requirements of the package for pip: the oldest versions that it promises to work with, or any newer one.

``make test-floors`` installs the oldest: every ``name>=version`` of ``pyproject.toml`` that runs or tests the package
becomes ``name==version``. With ``--newest`` and names of extras the requirements are printed as they are.
"""

import sys
import tomllib
from pathlib import Path

EXTRAS = ("cli", "plot", "test")

COMPANIONS = ["pyparsing<3.3"]
"""matplotlib 3.8 calls what later versions warn of, and warnings are errors here."""

asked = sys.argv[2:] if sys.argv[1:2] == ["--newest"] else None
project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = [project["optional-dependencies"][extra] for extra in (EXTRAS if asked is None else asked)]
for requirement in (requirement for group in (project["dependencies"], *extras) for requirement in group):
    print(requirement.replace(">=", "==") if asked is None else requirement)
if asked is None:
    print(*COMPANIONS, sep="\n")

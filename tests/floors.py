"""Print the oldest versions that the package promises to work with, as requirements for pip.

``make test-floors`` installs them: every ``name>=version`` of ``pyproject.toml`` that runs or tests the package becomes
``name==version``.
"""

import tomllib
from pathlib import Path

EXTRAS = ("cli", "plot", "test")

COMPANIONS = ["pyparsing<3.3"]
"""matplotlib 3.8 calls what later versions warn of, and warnings are errors here."""

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS), COMPANIONS]
for requirement in (requirement for group in groups for requirement in group):
    print(requirement.replace(">=", "=="))

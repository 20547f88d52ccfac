"""The site of the documentation: ``make docs``.

Sphinx with MyST and furo, because pages stay plain Markdown that reads well in the repository too, docstrings become
the reference without a second tool, every broken link is a warning and every warning an error, and all three are
maintained. Material for MkDocs went into maintenance in 2025, and MkDocs itself has had no release since 2024.

The sources are the root of the repository, so that a link from one page to another is the same path here and there.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs" / "tools"), str(ROOT / "python")]

import figures  # noqa: E402
import hinge  # noqa: E402
import performance  # noqa: E402

project = "hinge"
author = "The hinge developers"
copyright = "the hinge developers"
version = release = hinge.__version__

root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/api/*.rst", "benches/record/*.md", "*.md"]
exclude_patterns = ["README.md", "docs/generated", ".*", "target", "src", "python", "tests", "dist", "bench", "site"]

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
]

myst_enable_extensions = ["attrs_inline", "attrs_block", "colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]

autosummary_generate = True
autosummary_generate_overwrite = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

templates_path = [str(ROOT / "docs" / "_templates")]  # autosummary looks below the sources, not below this folder
html_theme = "furo"
smartquotes = False  # "newton" is a value
pygments_style = "tango"
pygments_dark_style = "github-dark"
html_title = f"hinge {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Write what pages include: tables from the records of the benches, and pictures by the package's own plots."""
    generated = ROOT / "docs" / "generated"
    app.connect("builder-inited", lambda app: performance.write(ROOT / "benches" / "record", generated))
    app.connect("builder-inited", lambda app: figures.write(generated))

"""What is cited of the works is in the table of :mod:`citations`, and the passages are where it says."""

import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from citations import CITED, OTHERS, TEXTS, Citation, citations, is_there
from source_code import ROOT, name_of

FOLDERS = ("src", "python/hinge", "benches", "docs", "tests", "examples")
SUFFIXES = (".rs", ".py", ".pyi", ".md")
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
OURSELVES = ("tests/python/citations.py", "tests/python/test_citations.py")

PAPERS = Path(os.environ.get("HINGE_PAPERS", ROOT.parent / "shared" / "papers"))


@cache
def found() -> list[Citation]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    names = {name_of(path) for path in paths} | set(PAGES)
    return [
        citation
        for name in sorted(names - set(OURSELVES))
        for citation in citations(name, (ROOT / name).read_text("utf-8"))
    ]


def unknown(cited: list[Citation]) -> list[str]:
    """Citations that the table has not."""
    return [
        f"{c.path}:{c.line}: {c.what} of {c.work or 'a work that is not named'}"
        for c in cited
        if c.what not in {**CITED, **OTHERS}.get(c.work, ())
    ]


def test_every_citation_is_in_the_table():
    missing = unknown(found())
    assert not missing, "look these up and add them to tests/python/citations.py:\n" + "\n".join(missing)


def test_everything_in_the_table_is_cited():
    cited = defaultdict(set)
    for citation in found():
        cited[citation.work].add(citation.what)
    tables = {**CITED, **OTHERS}
    idle = [f"{what} of {work}" for work, table in tables.items() for what in set(table) - cited[work]]
    assert not idle, f"nothing cites these, take them out of the table: {', '.join(sorted(idle))}"


def test_words_of_the_table_are_few():
    assert all(0 < len(words.split()) <= 6 for table in CITED.values() for words in table.values())


@pytest.mark.parametrize("work", CITED)
def test_passages_are_in_the_texts(work):
    path = PAPERS / TEXTS[work]
    if not path.exists():
        pytest.skip(f"no texts: {path} is missing, set HINGE_PAPERS")
    text = path.read_text("utf-8")
    wrong = [f"{what}: {words}" for what, words in CITED[work].items() if not is_there(text, what, words)]
    assert not wrong, f"{path.name} has not: {'; '.join(wrong)}"


# That the tests above can fail.


def test_citations_are_found():
    text = """
//! As Chu15 (eqs. (24) and
//! 28) has it, and theorems 1 to 3; figures 2e, 2f.
//!
//! See algorithm 2 of ChangRoth11, sections 3.1-3.3 of it; Hsieh08, slides "One" and "Another
//! one". A table of 3 rows, section A, eq. by eq., in 2008, and 45 figures.

    /// The loop property (19).
"""
    assert [(c.work, c.what, c.line) for c in citations("src/x.rs", text)] == [
        ("Chu15", "eq 24", 2),
        ("Chu15", "eq 28", 2),
        ("Chu15", "theorem 1", 3),
        ("Chu15", "theorem 2", 3),
        ("Chu15", "theorem 3", 3),
        ("Chu15", "figure 2", 3),
        ("Chu15", "figure 2", 3),
        ("ChangRoth11", "algorithm 2", 5),
        ("ChangRoth11", "section 3.1", 5),
        ("ChangRoth11", "section 3.2", 5),
        ("ChangRoth11", "section 3.3", 5),
        ("Hsieh08", "slide One", 5),
        ("Hsieh08", "slide Another one", 5),
        ("", "eq 19", 8),
    ]
    assert [c.work for c in citations("benches/papers/chu15.py", "Table 9")] == ["Chu15"]
    assert [c.work for c in citations("src/lib.rs", "Table 9")] == [""]


def test_a_citation_that_is_not_in_the_table_is_seen():
    [seen] = unknown(list(citations("src/x.rs", "// after Chu15, eq. (99)\n")))
    assert seen == "src/x.rs:1: eq 99 of Chu15"
    [seen] = unknown(list(citations("src/x.rs", "// by eq. (24)\n")))
    assert "not named" in seen
    assert not unknown(list(citations("src/x.rs", "// after Chu15, eq. (24)\n")))


def test_a_passage_at_another_number_is_not_there():
    text = """2.1 Choos ing a start Some words . The rule is
|x| < 1 ( 24 ) Table 2 : Seconds of all . 3Note this .



Order of things

- First one
"""
    for what, words in (
        ("section 2.1", "Choosing a start"),
        ("eq 24", "The rule is"),
        ("table 2", "Seconds of all"),
        ("footnote 3", "Note this"),
        ("slide Order of things", "First one"),
    ):
        assert is_there(text, what, words)
        assert not is_there(text, what.replace("2", "5").replace("3", "5").replace("Order", "Way"), words)
        assert not is_there(text, what, "Other words")

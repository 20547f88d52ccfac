"""The house keeps its order: pages name what is there, files do not import each other in a circle, a name means one
thing, lines and functions stay short.

What is not yet as it should be is listed here by name or number, exactly: a test fails as well where a list says more
than there is, so that what has been mended stays mended.
"""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import source_code
from source_code import (
    ROOT,
    SRC,
    circles,
    code_of,
    functions,
    name_of,
    public_types,
    python_files,
    python_imports,
    rust_files,
    rust_imports,
    sources,
    split_at_commas,
    use_tree,
)

# What is still to be mended. Nothing is to be added here.

KNOWN_CIRCLES = {
    ("python/hinge/_cost_file.py", "python/hinge/path.py"),
}

KNOWN_NAMES = {}  # how many public types have the name

KNOWN_WIDE_LINES = 0
KNOWN_LONG = set()
KNOWN_PARAMETERS = set()

MAX_COLUMNS, MAX_LINES, MAX_PARAMETERS = 110, 80, 7

WELL_DONE = "mended, well done; take off"


def check_known(found, known, list_name, what_to_do):
    """Fail with what is new, and with what is known and gone."""
    new, gone = sorted(found - known), sorted(known - found)
    assert not new, f"{what_to_do}: {', '.join(new)}"
    assert not gone, f"{WELL_DONE} {list_name}: {', '.join(gone)}"


# Pages.

PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md"]

SUFFIXES = r"\.(rs|py|pyi|md|toml|lock|json|npz|csv|so)"


@cache
def text_of(page):
    return (ROOT / page).read_text("utf-8")


def paths_in(page):
    """What a page names in backticks that looks like a path: with a slash, or with the suffix of a file."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    words = [word for code in re.findall(r"`([^`]+)`", text) for word in code.split()]
    return {word for word in words if re.fullmatch(rf"[\w.*/-]+/[\w.*/-]*|[\w.*-]+{SUFFIXES}", word)}


def planned_in(page):
    """Paths that ``<!-- check: path ... -->`` says are not in the tree yet."""
    return {word for note in re.findall(r"<!-- check:(.*?)-->", text_of(page), re.DOTALL) for word in note.split()}


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_what_exists(page):
    found = {path: any(ROOT.glob(path.rstrip("/"))) for path in paths_in(page)}
    missing = {path for path, exists in found.items() if not exists} - planned_in(page)
    assert not missing, f"{page} names what is not there: {', '.join(sorted(missing))}"
    here = {path for path in planned_in(page) if "/" in path and any(ROOT.glob(path.rstrip("/")))}
    assert not here, f"these exist by now, take their `<!-- check: -->` out of {page}: {', '.join(sorted(here))}"


def test_map_has_every_part_of_the_crate():
    parts = {"/".join(name_of(path).split("/")[:2]) for path in rust_files("src")}
    missing = parts - {path.rstrip("/") for path in paths_in("ARCHITECTURE.md")}
    assert not missing, f"ARCHITECTURE.md needs a line on each of: {', '.join(sorted(missing))}"


def test_links_of_pages_lead_somewhere():
    pages = ["README.md", *PAGES, *(name_of(path) for path in (ROOT / "docs").glob("*.md"))]
    for page in pages:
        targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text_of(page))
        # Pictures are drawn when the site is built, by a script that names each.
        drawn = [Path(target).stem for target in targets if target.startswith("generated/")]
        unnamed = [name for name in drawn if name.rsplit("-", 1)[0] not in text_of("docs/tools/figures.py")]
        assert not unnamed, f"docs/tools/figures.py draws nothing of the name: {', '.join(unnamed)}"
        targets = [target for target in targets if not target.startswith("generated/")]
        broken = [target for target in targets if not ((ROOT / page).parent / target).exists()]
        assert not broken, f"{page} links to what is not there: {', '.join(broken)}"
    unlinked = [page for page in (*PAGES, "docs/index.md") if f"]({page})" not in text_of("README.md")]
    assert not unlinked, f"README.md has no link to: {', '.join(unlinked)}"


@pytest.mark.parametrize(
    ("rule", "sign"), [("Unsafe code", r"allow\(unsafe_code\)"), ("Clocks", r"\b(Instant|SystemTime)\b")]
)
def test_exceptions_are_those_that_are_written_down(rule, sign):
    paragraph = re.search(rf"^\* \*\*{rule}\.\*\*.*?(?=^\S)", text_of("ARCHITECTURE.md"), re.MULTILINE | re.DOTALL)[0]
    found = {name_of(path) for path in sources() if re.search(sign, code_of(path))}
    said = {path for path in paths_in("ARCHITECTURE.md") if f"`{path}`" in paragraph and path.endswith(".rs")}
    assert found == said, f"'{rule}' in ARCHITECTURE.md and the code differ: {', '.join(sorted(found ^ said))}"


# Imports.


@cache
def imports():
    """Of every file, the files it imports."""
    package, benches = python_files("python/hinge"), python_files("benches")
    scripts = (ROOT / "benches/compare", ROOT / "benches/papers")
    return (
        {path: rust_imports(path) for path in sources()}
        | {path: python_imports(path, (ROOT / "python",)) for path in package}
        | {path: python_imports(path, (path.parent, *scripts)) for path in benches}
    )


def describe(group):
    """A circle, file by file."""
    used = {name_of(file): {name_of(other) for other in others} for file, others in imports().items()}
    return "\n  a circle:" + "".join(
        f"\n    {file} uses {', '.join(sorted(used[file] & set(group)))}" for file in group
    )


def test_no_files_import_each_other_in_a_circle():
    found = set(circles(imports()))
    new, gone = found - KNOWN_CIRCLES, KNOWN_CIRCLES - found
    assert not new, (
        "move what several of these need into a file that uses none of them; where a known circle has only become "
        f"smaller, write the smaller one into KNOWN_CIRCLES: {''.join(map(describe, sorted(new)))}"
    )
    assert not gone, f"{WELL_DONE} KNOWN_CIRCLES: {'; '.join(', '.join(group) for group in sorted(gone))}"


# Names and sizes.


def test_a_name_means_one_type():
    places = {}
    for path in sources():
        for name in public_types(path):
            places.setdefault(name, []).append(name_of(path))
    known = {name: n for n, names in KNOWN_NAMES.items() for name in names.split()}
    more = [f"{name} ({', '.join(files)})" for name, files in places.items() if len(files) > known.get(name, 1)]
    assert not more, f"public types of one name; call each what it is: {'; '.join(sorted(more))}"
    fewer = [f"{name} has {len(places.get(name, []))}" for name, n in known.items() if len(places.get(name, [])) < n]
    assert not fewer, f"mended, well done; put right KNOWN_NAMES: {', '.join(fewer)}"


def test_lines_of_rust_are_not_wide():
    wide = Counter()
    for path in rust_files("src", "tests/rust", "benches"):
        wide[name_of(path)] += sum(len(line) > MAX_COLUMNS for line in path.read_text("utf-8").splitlines())
    where = ", ".join(f"{file} ({n})" for file, n in wide.most_common() if n)
    n = wide.total()
    assert n <= KNOWN_WIDE_LINES, f"{n} lines above {MAX_COLUMNS} columns; break them: {where}"
    assert n == KNOWN_WIDE_LINES, f"mended, well done; KNOWN_WIDE_LINES is {n} now"


@cache
def all_functions():
    return [function for path in sources() for function in functions(path)]


def test_functions_are_short():
    long = {f"{f.file} {f.name}" for f in all_functions() if f.n_lines > MAX_LINES}
    check_known(long, KNOWN_LONG, "KNOWN_LONG", f"functions above {MAX_LINES} lines; take a thought out of each")


def test_functions_have_few_parameters():
    """Those of the binding have what Python's callers give."""
    many = {f"{f.file} {f.name}" for f in all_functions() if f.n_parameters > MAX_PARAMETERS}
    many = {name for name in many if not name.startswith("src/python/")}
    what_to_do = f"functions of more than {MAX_PARAMETERS} parameters; make a struct of what belongs together"
    check_known(many, KNOWN_PARAMETERS, "KNOWN_PARAMETERS", what_to_do)


# The reader of sources itself.


def test_code_is_read_without_comments_literals_and_tests(tmp_path):
    file = tmp_path / "a.rs"
    strings, comments = """let a = "fn x() {"; let b = '"'; r#"fn " z"#;""", "/* fn v()\n*/ fn w<'a>() {} // fn y()"
    file.write_text(f"{strings}\n{comments}\n#[cfg(test)]\nmod tests {{ fn t() {{}} }}")
    assert re.findall(r"fn (\w+)", code_of(file)) == ["w"]
    assert code_of(file).count("\n") == 3


def test_lists_are_split_outside_of_brackets():
    assert split_at_commas("a: [f64; 3], b: impl Fn(u8, u8) -> V<u8, u8>, c: u8,") == [
        "a: [f64; 3]",
        "b: impl Fn(u8, u8) -> V<u8, u8>",
        "c: u8",
    ]
    assert list(use_tree("super::{a::{self, B as C}, d}")) == [
        ("a", ("super", "a")),
        ("C", ("super", "a", "B")),
        ("d", ("super", "d")),
    ]


def test_sizes_of_functions_are_right():
    found = {f.name: f for f in functions(SRC / "fit/auto.rs")}
    text = (SRC / "fit/auto.rs").read_text("utf-8")
    assert set(found) == set(re.findall(r"\bfn (\w+)", text.split("#[cfg(test)]")[0]))


@pytest.fixture
def crate(tmp_path, monkeypatch):
    """Another crate in the place of this one: a function that writes it."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / "src" / f"{name.replace('__', '/')}.rs"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {name_of(path): {name_of(used) for used in rust_imports(path)} for path in sources()}

    monkeypatch.setattr(source_code, "ROOT", tmp_path)
    monkeypatch.setattr(source_code, "SRC", tmp_path / "src")
    source_code.modules.cache_clear()
    yield write
    source_code.modules.cache_clear()


def test_imports_are_followed_to_where_the_item_is(crate):
    found = crate(
        lib="pub mod a; mod d; pub use a::B;",
        a__mod="pub mod b; pub mod c; pub use b::B; pub struct A; fn f() { c::go() }",
        a__b="use super::{A, c::C}; pub struct B;",
        a__c="use super::B as Other; pub fn go() {} pub struct C;",
        d="use crate::a; fn f(_: crate::B) { a::c::go(); a::A } // crate::e::E",
        e="pub use crate::d::f;",
    )
    assert found == {
        "src/lib.rs": set(),
        "src/a/mod.rs": set(),
        "src/a/b.rs": {"src/a/mod.rs", "src/a/c.rs"},
        "src/a/c.rs": {"src/a/b.rs"},
        "src/d.rs": {"src/a/mod.rs", "src/a/b.rs", "src/a/c.rs"},
        "src/e.rs": {"src/d.rs"},
    }


def test_circles_are_found_and_chains_are_not():
    a, b, c, d = (ROOT / name for name in "abcd")
    assert circles({a: {b}, b: {c}, c: {b, d}}) == [("b", "c")]
    assert circles({a: {b, c}, b: {c}, c: {d}}) == []

"""The sources of the package as data: who imports whom, which types there are, how long functions are.

Rust is read by patterns, not by a compiler: enough for code that rustfmt has laid out.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"

Paths = tuple[str, ...]  # of a module or a name in the crate: ("fit", "dual", "solve")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def rust_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.rs"))


# Rust: text.

COMMENT_OR_LITERAL = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/
    | \bb?r(?P<hashes>\#*)".*?"(?P=hashes) | b?"(?:\\.|[^"\\])*"
    | b?'(?:\\.[^']*|[^'\\\n])'  # a letter, not the name of a lifetime
    """,
    re.VERBOSE | re.DOTALL,
)


@cache
def code_of(path: Path) -> str:
    """A file without comments, literals and its tests; every line stays where it is."""
    code = COMMENT_OR_LITERAL.sub(lambda match: "\n" * match[0].count("\n"), path.read_text("utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*mod tests? \{", code)[0]


def sources() -> list[Path]:
    """The files of the crate that are no tests."""
    return [path for path in rust_files("src") if path.name != "tests.rs"]


# Rust: imports.


@cache
def modules() -> dict[Paths, Path]:
    """The file of each module of the crate."""
    return {module_of(path): path for path in sources()}


def module_of(path: Path) -> Paths:
    *folders, name = path.relative_to(SRC).with_suffix("").parts
    return (*folders,) if name in ("mod", "lib") else (*folders, name)


def use_tree(tree: str, head: Paths = ()) -> Iterator[tuple[str, Paths]]:
    """Every name that ``use a::{b, c as d}`` brings, with its path: (b, a::b) and (d, a::c)."""
    match = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree.strip(), re.DOTALL)
    if not match:
        path, _, alias = tree.strip().partition(" as ")
        names = (*head, *re.split(r"\s*::\s*", path.strip()))
        names = names[:-1] if names[-1] == "self" and len(names) > 1 else names
        yield alias.strip() or names[-1], names
        return
    inner = (*head, *(name for name in match[1].split("::") if name))
    for part in split_at_commas(match[2]):
        yield from use_tree(part, inner)


def split_at_commas(text: str) -> list[str]:
    """The parts of a list, brackets within it left whole."""
    parts, depth = [""], 0
    for character, before in zip(text, " " + text, strict=False):
        opens = character in "([{<"
        closes = character in ")]}" or (character == ">" and before not in "-=")
        depth += opens - closes
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


@cache
def uses(path: Path) -> tuple[tuple[bool, str, Paths], ...]:
    """The ``use`` items of a file: whether it is a re-export, the name, its path from the crate's root."""
    found = []
    for public, tree in re.findall(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", code_of(path)):
        for name, names in use_tree(tree):
            if (absolute := from_root(names, module_of(path))) is not None:
                found.append((bool(public), name, absolute))
    return tuple(found)


def from_root(names: Paths, here: Paths) -> Paths | None:
    """A path from the crate's root; ``None`` for one that leads out of the crate."""
    if names[0] == "crate":
        return names[1:]
    if names[0] == "self":
        return here + names[1:]
    if names[0] == "super":
        n_up = next((k for k, name in enumerate(names) if name != "super"), len(names))
        return here[: len(here) - n_up] + names[n_up:]
    return here + names if (*here, names[0]) in modules() else None


def definer(names: Paths) -> tuple[Path, bool]:
    """The file that defines what a path names, re-exports followed; and whether the path is just a module's."""
    n_known = next(k for k in range(len(names), -1, -1) if names[:k] in modules())
    file = modules()[names[:n_known]]
    if n_known == len(names):
        return file, True
    for _, name, target in uses(file):
        if name == names[n_known] and target != names:
            return definer(target + names[n_known + 1 :])
    return file, False


def rust_imports(path: Path) -> set[Path]:
    """The files whose items a file uses, re-exports followed to where the item is.

    A folder's ``mod.rs`` stands for what it defines itself: to bring one of its children in by it is to use the child
    alone, and what it does with its own children does not count, since children build on what their parent defines.
    """
    here, code = module_of(path), re.sub(r"\buse\s[^;]+;", "", code_of(path))
    aliases = {name: target for _, name, target in uses(path)}
    is_head = path.name in ("mod.rs", "lib.rs")
    found = [target for is_public, _, target in uses(path) if not (is_head and is_public)]
    for text in re.findall(r"(?<![\w:])\w+(?:::\w+)+", code):
        names = tuple(text.split("::"))
        absolute = aliases[names[0]] + names[1:] if names[0] in aliases else from_root(names, here)
        found += [absolute] if absolute is not None else []
    defined = [definer(names) for names in found]
    files = {file for file, is_module in defined if not is_module or file.name not in ("mod.rs", "lib.rs")}
    children = {file for file in files if is_head and path.parent in file.parents}
    return files - children - {path}


# Rust: declarations.


@dataclass(frozen=True)
class Function:
    """A function of the crate and its size."""

    name: str
    file: str
    line: int
    n_lines: int
    n_parameters: int  # beside self

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


TYPE = re.compile(r"^\s*pub(?:\([^)]*\))?\s+(?:unsafe\s+)?(?:struct|enum|union|trait|type)\s+(\w+)", re.MULTILINE)


def public_types(path: Path) -> list[str]:
    """Names of the types and traits that a file shows to others; associated types have no ``pub`` and do not count."""
    return TYPE.findall(code_of(path))


def functions(path: Path) -> Iterator[Function]:
    """The functions of a file that have a body."""
    code = code_of(path)
    for match in re.finditer(r"\bfn\s+(\w+)\s*(?=[<(])", code):
        at = match.end()
        if code[at] == "<":
            at = code.index("(", closing(code, at))
        end = closing(code, at)
        parameters = split_at_commas(code[at + 1 : end - 1])
        while code[end] not in "{;":
            end = closing(code, end) if code[end] in "([" else end + 1
        if code[end] == "{":
            first = code.count("\n", 0, match.start()) + 1
            n_lines = code.count("\n", match.start(), closing(code, end)) + 1
            n_parameters = sum(
                not re.fullmatch(r"(&\s*('\w+\s+)?)?(mut\s+)?self(\s*:.*)?", p, re.DOTALL) for p in parameters
            )
            yield Function(match[1], name_of(path), first, n_lines, n_parameters)


def closing(code: str, start: int) -> int:
    """The end of what the bracket at ``start`` opens."""
    opening = code[start]
    other = {"(": ")", "[": "]", "{": "}", "<": ">"}[opening]
    depth = 0
    for match in re.compile(rf"->|=>|[{re.escape(opening + other)}]").finditer(code, start):
        depth += (match[0] == opening) - (match[0] == other)
        if depth == 0:
            return match.end()
    raise ValueError(f"no {other} for {code[start : start + 40]!r}")


# Python: imports.


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def python_imports(path: Path, roots: tuple[Path, ...]) -> set[Path]:
    """The files a file imports, wherever in it: at its head, within functions, for types only. Names are looked for
    in the folders where Python finds them."""
    found = set()
    for node in statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {imported_file(alias.name, roots) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            head = path.parents[node.level - 1] if node.level else None
            found |= {
                imported_name(package.lstrip("."), alias.name, (head,) if head else roots) for alias in node.names
            }
    return found - {None, path}


def statements(block: ast.AST) -> Iterator[ast.AST]:
    """All statements of a block and of those within."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(block, part, []):
            yield statement
            yield from statements(statement)


@cache
def imported_file(module: str, roots: tuple[Path, ...]) -> Path | None:
    for root in roots:
        stem = root.joinpath(*module.split("."))
        for file in (stem.with_suffix(".py"), stem.with_suffix(".pyi"), stem / "__init__.py"):
            if file.is_file():
                return file
    return None


def imported_name(package: str, name: str, roots: tuple[Path, ...]) -> Path | None:
    """The file behind ``from package import name``, followed through the packages that pass the name on."""
    file = imported_file(f"{package}.{name}" if package else name, roots) or imported_file(package, roots)
    if file is not None and file.name == "__init__.py":
        for node in statements(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
                return imported_name(node.module, name, roots)
    return file


# Circles.


def circles(imports: dict[Path, set[Path]]) -> list[tuple[str, ...]]:
    """Groups of files that import each other, each as sorted names (Tarjan's strongly connected components)."""
    order: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    groups: list[tuple[str, ...]] = []

    def visit(file: Path) -> None:
        order[file] = low[file] = len(order)
        stack.append(file)
        for other in sorted(imports.get(file, ())):
            if other not in order:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], order[other])
        if low[file] == order[file]:
            at = stack.index(file)
            groups.append(tuple(sorted(map(name_of, stack[at:]))))
            del stack[at:]

    for file in sorted(imports):
        if file not in order:
            visit(file)
    return sorted(group for group in groups if len(group) > 1)

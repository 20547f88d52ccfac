"""What the sources cite of the works by number or by title, and how each passage begins.

:data:`CITED` is the table; :func:`citations` finds what a file cites, :func:`is_there` looks a passage up in
the text of a work.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

# The table: work, what is cited, some words there. Of a section they are its title; of a table, a figure, a
# theorem, an algorithm and a footnote what follows the number; of an equation and a slide they are near it.

CITED = {
    "Chu15": {
        "algorithm 1": "A complete procedure for parameter",
        "eq 12": "is a dual optimal solution",
        "eq 13": "naturally can be an initial solution",
        "eq 14": "naturally can be an initial solution",
        "eq 19": "is a decreasing function after",
        "eq 21": "The value derived in",
        "eq 22": "For L2 loss SVM, if",
        "eq 24": "We stop the procedure for parameter",
        "eq 26": "The result",
        "eq 27": "The result",
        "eq 28": "the same as the primal one",
        "figure 1": "CV accuracy and training time",
        "figure 2": "Objective values versus training time",
        "figure 3": "Training time (in seconds) using",
        "footnote 8": "Note that warm start has",
        "section 3.1": "Selection of Initial Solutions",
        "section 3.2": "A Comparison on the Effectiveness",
        "section 3.3.1": "Lower Bound of C",
        "section 3.3.2": "Upper Bound of C",
        "section 3.4": "The Overall Procedure",
        "section 4.1": "CV Accuracy and Training Time",
        "section 4.2": "Initial Objective Values",
        "section 4.4": "Performance of the Parameter selection",
        "section 4.5": "CV Folds and Models",
        "table 1": "Data statistics",
        "table 2": "Difference between the initial and",
        "table 3": "CV accuracy using a dedicated",
        "theorem 1": "Consider any nonnegative and convex",
        "theorem 2": "If L2 loss is used",
        "theorem 3": "If LR loss is used",
        "theorem 4": "If L2 loss is used",
        "theorem 5": "If the problem is not",
        "theorem 6": "If L1 loss is used",
        "theorem 7": "Assume L1 loss is used",
        "theorem 8": "Assume L(w) is continuously differentiable",
    },
    "Hsieh08": {
        "slide Algorithm": "Given initial",
        "slide Comparisons (Latest Version Used)": "Dual coordinate descent (DCDL1-S",
        "slide Objective values (Time in Seconds)": "Time for a solver to",
        "slide Order of Sub-problems": "Order of sub-problems being minimized",
        "slide Shrinking: Much Easier than Nonlinear": "if it is likely to be",
    },
    "Wesierski16": {
        "eq 7": "giving rise to the following",
        "eq 8": "giving rise to the following",
        "eq 9": "giving rise to the following",
        "eq 10": "we obtain",
        "eq 11": "linear inequality constraints from",
        "eq 12": "linear inequality constraints from",
        "eq 13": "linear inequality constraints from",
        "eq 14": "is the orthogonal projector onto",
        "eq 16": "updates the set from",
        "eq 19": "the following vertex loop property",
        "eq 20": "by the set of vertices",
        "eq 21": "by the set of vertices",
        "eq 22": "by the set of vertices",
        "figure 1": "Visualization of the entire regularization",
        "figure 2": "Visualization of the entire regularization",
        "section 3.1": "AC-LSVMPath algorithm",
        "section 4": "Numerical experiments",
    },
    "ChangRoth11": {
        "eq 7": "we compare the relative difference",
        "eq 8": "the best test accuracy among",
        "figure 1": "The figure illustrates how a",
        "figure 2": "(SBM*) and the block minimization",
        "figure 3": "A comparison between SBM and",
        "figure 4": "A comparison among SBM, BMD",
        "figure 5": "The relative function value difference",
        "footnote 6": "Eg, in figure 2(a), more than",
        "section 2.2": "Selecting Cached Data",
        "section 3": "Multi class classification",
        "section 4": "Learning from streaming data",
        "section 5.2": "Dealing with a Large",
        "section 7.1": "Training Time and Testing Accuracy",
        "section 7.2": "Experiments on Streaming Data",
        "table 1": "Data statistics",
        "table 2": "Training time (wall clock time)",
    },
    "SchmidtThieme": {
        "slide Basic Idea": "Instead of using a nonlinear",
        "slide Maintaining Small Parameters": "Lemma (Shalev-Shwartz, Singer, and Srebro",
        "slide Pegasos": "learn-linear-svm-pegasos",
        "slide Stochastic Subgradient Descent": "learn-linear-svm-stochastic-subgradient-descent-primal",
        "slide Subgradient Descent": "minimize",
        "table 4": "Comparison of linear SVM and",
        "table 5": "Training time (in seconds) and",
    },
}

# Other works, whose passages are not looked up.

OTHERS = {
    "ChangHsiehLin08": {"theorem 2"},
    "GalliLin21": {"section 5"},
    "Keerthi08": {"section 3", "section 3.3"},
    "OgitaRumpOishi05": {"algorithm 4.1", "algorithm 5.3"},
    "Yu11": {"algorithm 3", "section 3.4"},
}

TEXTS = {
    "Chu15": "chu15-warm-start.txt",
    "Hsieh08": "hsieh08-dual-coordinate-descent-slides.txt",
    "Wesierski16": "wesierski16-asymmetric-cost-path.txt",
    "ChangRoth11": "changroth11-selective-block-minimization.txt",
    "SchmidtThieme": "primal-methods-lecture.txt",
}

NAMES = {
    "Chu15": r"Chu15|Chu et al\.|Chu, Ho",
    "Hsieh08": r"Hsieh08",
    "Wesierski16": r"Wesierski(?:16| et al\.)",
    "ChangRoth11": r"ChangRoth11|Chang, Roth",
    "SchmidtThieme": r"SchmidtThieme",
    "ChangHsiehLin08": r"Chang, Hsieh, Lin",
    "GalliLin21": r"GalliLin21",
    "Keerthi08": r"Keerthi08",
    "OgitaRumpOishi05": r"Ogita, Rump, Oishi",
    "Yu11": r"Yu11",
}

DEFAULTS = {
    "src/cost_plane/": "Wesierski16",
    "src/fit/baselines/primal_cd.rs": "ChangHsiehLin08",
    "benches/papers/chang10": "SchmidtThieme",
    "benches/papers/changroth11": "ChangRoth11",
    "benches/papers/chu15": "Chu15",
    "benches/papers/hsieh08": "Hsieh08",
    "benches/papers/wesierski16": "Wesierski16",
    "benches/record/chang10": "SchmidtThieme",
    "benches/record/changroth11": "ChangRoth11",
    "benches/record/chu15": "Chu15",
    "benches/record/hsieh08": "Hsieh08",
    "benches/record/wesierski16": "Wesierski16",
}
"""Of files whose name begins so: the work where a paragraph names none."""


@dataclass(frozen=True)
class Citation:
    """What is cited, where; the work is empty if nothing says which."""

    work: str
    what: str
    path: str
    line: int


# What is cited.

KINDS = {
    "algorithm": r"algorithms?",
    "appendix": r"appendix|appendices",
    "corollary": r"corollary|corollaries",
    "definition": r"definitions?",
    # The number of an equation in brackets may also stand behind a noun.
    "eq": r"eqs?\.|equations?|(?:propert(?:y|ies)|constraints?|conditions?|rules?|bounds?|scores?)(?=\s\(\d)",
    "figure": r"figures?|fig\.",
    "footnote": r"footnotes?",
    "lemma": r"lemmas?",
    "section": r"sections?|sec\.",
    "table": r"tables?",
    "theorem": r"theorems?",
}
PLAIN = r"(?:\d{1,2}(?:\.\d{1,2})*|[A-E]\.\d{1,2})(?![\d.]*\d)[a-f]?"
NUMBER = rf"(?:\({PLAIN}\)|{PLAIN})"
BETWEEN = r"(?:\s?-\s?|\sto\s|,\sand\s|,\sor\s|,\s|\sand\s|\sor\s)"
LISTED = rf"{NUMBER}(?:{BETWEEN}{NUMBER})*"
NUMBERED = re.compile(
    "|".join(rf"\b(?P<{kind}>{words})\s(?P<{kind}_numbers>{LISTED})" for kind, words in KINDS.items()),
    re.IGNORECASE,
)
TITLED = re.compile(r'\bslides?\s(?P<titles>"[^"]+"(?:(?:,\s|\sand\s)"[^"]+")*)', re.IGNORECASE)
NAMED = re.compile("|".join(rf"(?P<{work}>{names})" for work, names in NAMES.items()))
BEHIND = re.compile(rf"\s(?:of|in)\s(?:{NAMED.pattern})")


def citations(path: str, text: str) -> Iterator[Citation]:
    """All citations of a file."""
    for line, paragraph in paragraphs(text):
        for match in NUMBERED.finditer(paragraph):
            kind = next(kind for kind in KINDS if match[kind])
            work = work_of(path, paragraph, match)
            for number in numbers(match[f"{kind}_numbers"]):
                yield Citation(work, f"{kind} {number}", path, line + paragraph.count("\n", 0, match.start()))
        for match in TITLED.finditer(paragraph):
            work = work_of(path, paragraph, match)
            for title in re.findall(r'"([^"]+)"', match["titles"]):
                title = " ".join(title.split())
                yield Citation(work, f"slide {title}", path, line + paragraph.count("\n", 0, match.start()))


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of each paragraph, without the marks of comments; lines stay apart."""
    bare = [re.sub(r"^\s*(?://[/!]?|#|[-*] )?\s*", "", line).rstrip() for line in text.split("\n")]
    first = 0
    for k, line in enumerate([*bare, ""]):
        if not line:
            if k > first:
                yield first + 1, "\n".join(bare[first:k]).replace('\\"', '"')
            first = k + 1


def work_of(path: str, paragraph: str, match: re.Match) -> str:
    """The work named right behind a citation, else the last one before it, else the work of the file."""
    behind = BEHIND.match(paragraph, match.end())
    if behind:
        return str(behind.lastgroup)
    before = list(NAMED.finditer(paragraph, 0, match.start()))
    if before:
        return str(before[-1].lastgroup)
    return next((work for start, work in DEFAULTS.items() if path.startswith(start)), "")


def numbers(listed: str) -> Iterator[str]:
    """The numbers of a list, ranges written out, letters of panels left off."""
    found = re.findall(rf"({BETWEEN})?({NUMBER})", listed)
    plain = [(between.strip(), re.sub(r"[()a-f]", "", number)) for between, number in found]
    for k, (between, number) in enumerate(plain):
        if between in ("-", "to"):
            *parents, first = plain[k - 1][1].split(".")
            inner = range(int(first) + 1, int(number.split(".")[-1]))
            yield from (".".join([*parents, str(n)]) for n in inner)
        yield number


# Looking passages up.

NEAR = 600
"""Letters between the words of the table and the number of an equation, or the title of a slide, at most."""


def letters(text: str) -> str:
    """Letters and digits only: what extraction from a PDF has left of the rest differs."""
    return re.sub(r"[^0-9a-z]", "", text.lower())


def is_there(text: str, what: str, words: str) -> bool:
    """Whether a text has the passage, at the number or under the title that is cited."""
    kind, name = what.split(" ", 1)
    passage = letters(words)
    if kind == "slide":
        lines = text.split("\n")
        titles = [k for k, line in enumerate(lines) if letters(line) == letters(name)]
        return any(passage in letters("".join(lines[k + 1 : k + 50]))[:NEAR] for k in titles)
    if kind == "eq":
        parts = [letters(part) for part in re.split(rf"\(\s*{name}\s*\)", text)]
        return any(passage in before[-NEAR:] or passage in after[:NEAR] for before, after in pairwise(parts))
    number = name if kind in ("section", "footnote") else what
    return letters(number) + passage in letters(text)

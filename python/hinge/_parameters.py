"""The parameters of all estimators, each declared once: name, what may be given, default, check and meaning.

Docstrings and checks are made of these tables; signatures are compared with them. The tables of the estimators are at
the end: later entries replace earlier ones of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hinge import _checks, _native, _penalty, _sklearn_names, _threads, _validate
from hinge._block_options import block_options
from hinge._budget import budget
from hinge._checks import at_least, not_negative, optional, positive, truth, unchecked
from hinge._choice import CHOICES
from hinge._declared import Parameter, one_of, table
from hinge.calibration import METHODS

SOLVERS = ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "primal_cd", "cutting_plane")
SEARCH_SOLVERS = SOLVERS[:5]
STEP_SIZES = ("pegasos", "root", "constant")

MIN_BITS, MAX_BITS = 12, 30

_DECADES = (-4, 4)
"""Powers of ten between which a number of ``Cs`` is spread, as in scikit-learn's LogisticRegressionCV."""


def _n_threads(name: str, value: Any) -> int:
    return _threads.threads(value)


def _seed(name: str, value: Any) -> int:
    return _validate.seed(value)


def _bytes(name: str, value: Any) -> int:
    return budget(value)


def _degree(name: str, value: Any) -> int:
    if isinstance(value, bool) or value not in (1, 2):
        raise ValueError(f"{name} must be 1 or 2, got {value!r}")
    return int(value)


def _hash_bits(name: str, value: Any) -> int:
    if _checks.whole(name, value, MIN_BITS) > MAX_BITS:
        raise ValueError(f"{name} must be at most {MAX_BITS}, got {value!r}")
    return int(value)


def _ratio(name: str, value: Any) -> float:
    if positive(name, value) <= 1:
        raise ValueError(f"{name} must be above 1, got {value!r}")
    return float(value)


def _costs(name: str, value: Any) -> list[float]:
    """Rising, each once."""
    if _checks.is_number(value):
        return np.logspace(*_DECADES, _checks.whole(name, value, 1)).tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ValueError(
            f"{name} must be a list of numbers above 0, or how many to take from 1e-4 to 1e4, got {value!r}"
        )
    values = {positive(name, C) for C in value}
    if not values:
        raise ValueError(f"{name} must hold at least one number, it is empty")
    return sorted(values)


def _step_size(name: str, value: Any) -> str:
    return "function" if callable(value) else _checks.choice(name, value, STEP_SIZES)


def _auto_or_truth(name: str, value: Any) -> Any:
    return value if isinstance(value, str) and value == "auto" else truth(name, value)


_N_JOBS = Parameter("n_jobs", "int", None, _n_threads).means(
    "Threads. None means all usable cores; results have the same bits for any number."
)

_RANDOM_STATE = Parameter("random_state", "int, RandomState or None", None, _seed).means(
    "Seed of the visiting order; None is a fixed seed."
)

_VERBOSE = Parameter("verbose", "int", 0, _checks.verbosity).means(
    "Progress on standard error if above 0; the logger ``hinge`` gets it at level INFO anyway."
)

_INTERCEPT_SCALING = Parameter("intercept_scaling", "float", None, optional(positive)).means("""
    If given, the intercept is the weight of a constant column of this height and penalised like every weight,
    as in LIBLINEAR.
    """)

_CLASS_WEIGHT = Parameter("class_weight", 'dict or "balanced"', None, unchecked).means("""
    Weight per class, above 0, multiplied with the sample weight; "balanced" makes the sums of all classes equal. A
    class of weight 0 would have a model of its own without a row to learn from: leave its rows out instead. None
    where y is a matrix of labels, whose columns share the weights of the rows.
    """)

_POLY2_MAP = table(
    Parameter("gamma", "float", None, optional(positive)).means(r"""
        A number scales the products like the kernel :math:`(\gamma\, x \cdot z + r)^2`; None takes them as they are.
    """),
    Parameter("coef0", "float", 1.0, not_negative).means(
        ":math:`r`, at least 0. Its constant feature is left out beside a free intercept."
    ),
    Parameter("hash_bits", "int", 22, _hash_bits).means("""
        Above ``2**hash_bits`` weights, pairs are hashed, see :class:`hinge.Poly2Map`; the seed is ``random_state``.
        From 12 to 30.
    """),
)

POLY2_MAP = table(
    _POLY2_MAP["gamma"].means(r"""
        A number gives features with :math:`\phi(x) \cdot \phi(z) = (\gamma\, x \cdot z + r)^2`, r being ``coef0``; None
        the plain :math:`x_j`, :math:`x_j^2`, :math:`x_j x_k`.
    """),
    _POLY2_MAP["coef0"].means(
        ":math:`r`, at least 0. The constant feature r is the last column, unless it is 0 or ``gamma`` is None."
    ),
    _POLY2_MAP["hash_bits"].means("""
        Up to ``2**hash_bits`` features n(n+3)/2, each pair has a column; beyond, the products of different features are
        hashed, with signs, into ``2**hash_bits`` columns behind the linear terms and the squares. 12 to 30.
    """),
    _RANDOM_STATE.means("Seed of the hash; None is a fixed seed."),
)

TABLE_ENCODER = table(
    Parameter("columns", '"auto" or dict', "auto", lambda name, value: value).means(r"""
        Names of columns, and what they are: the name of a kind, or a dict with ``kind`` and its options.

        - "numeric": numbers and truth values, as they are. ``scale="standard"`` or "maxabs" divides by the standard
          deviation or the largest absolute value, ``bins=10`` gives each of so many equally full bins a column.
        - "categorical": strings, numbers or truth values, each a column. ``handle_unknown="error"`` refuses what was
          not there in the fit; by default it is left out.
        - "text": strings. ``analyzer`` "word", "char" or "char_wb", ``ngrams=(1, 1)``, ``lowercase``, ``token_pattern``
          (``(?u)\\b\\w\\w+\\b``, ``(?u)\\b\\w+\\b`` or ``\\S+``), ``stop_words``, and the options of tokens, with
          ``norm="l2"`` and, when counted, ``use_idf=True`` as defaults.
        - "tokens": lists of strings. ``binary``, ``norm`` (None, "l1", "l2"); when counted ``min_df``, ``max_df``,
          ``max_features``, ``use_idf``, ``smooth_idf``, ``sublinear_tf``; when hashed ``prefix``, which stands in front
          of each term: by default nothing, or ``name=`` where several columns have terms.
        - "cross": with ``columns=[...]``, each combination of the values of columns of the table; its key is its name.
        - "auto" goes by the values of the first rows, and ``kinds_`` says why; "drop" leaves the column out.

        Every kind takes ``missing``. "auto" for all means every column of the table, each by its values.
    """),
    one_of("numbering", ("hashed", "counted")).means("""
        "hashed": a name's column is its MurmurHash3, in one space for all columns, as with scikit-learn's FeatureHasher
        and HashingVectorizer; nothing is counted. "counted": the names that occur in the fit, sorted, as with
        OneHotEncoder, CountVectorizer and TfidfVectorizer; each column of the table has a range of its own.
    """),
    Parameter("n_features", "int", 1 << 20, at_least(1)).means("Columns of the result when hashed."),
    Parameter("alternate_sign", "bool", True, truth).means(
        "Whether half of the hashed names count negative, so that collisions cancel on average."
    ),
    one_of("missing", ("own", "zero")).means("""
        What becomes of None, null and NaN, unless a column says otherwise: a 1 in a column of their own (when counted,
        if there were any in the fit), or nothing.
    """),
    one_of("remainder", ("drop", "auto")).means("Columns of the table that ``columns`` does not name."),
    one_of("on_change", ("error", "warn")).means("""
        What to do with a table that lacks a column of the fit, or has values of another type there: an error, or a
        warning, with missing columns taken for missing values.
    """),
    Parameter("track_drift", "bool", False, truth).means(
        "Whether ``transform`` adds up in ``drift_`` how many values were missing or not there in the fit."
    ),
    Parameter("sparse_output", "bool", True, truth).means(
        "False makes ``fit_transform`` and ``transform`` return dense arrays, which ``set_output`` needs when counted. "
        "Streams and saved models are sparse in any case."
    ),
    _N_JOBS,
)

_FIT = table(
    Parameter("tol", "float", _native.DEFAULT_TOL, positive).means("Relative duality gap at which the fit stops."),
    Parameter("max_iter", "int", _native.DEFAULT_MAX_ITER, at_least(1)).means(
        "Largest number of epochs or Newton steps of a fit."
    ),
    Parameter("fit_intercept", "bool", True, truth).means("Whether to fit an intercept; it is not penalised."),
    _INTERCEPT_SCALING,
    _CLASS_WEIGHT,
    Parameter("degree", "{1, 2}", 1, _degree).means("""
        2 trains on the products of all pairs of features too, which are generated while they are used and never
        stored (no presolve): ``coef_`` has n_features weights of linear terms, then those of pairs, see
        :meth:`pair_weights`. With another ``penalty`` than the squares, factors or bounds they are written out in
        memory, 8 to 12 bytes for each product of a row that is not 0.
    """),
    _POLY2_MAP,
    Parameter("presolve", '{"auto", True, False}', "auto", _checks.presolve).means("""
        Whether the solver works on a packed copy of a sparse X: proportional columns merged into one (an orthogonal
        change of variables, so the optimum is the same), empty columns dropped, the rest ordered by frequency. "auto"
        does so where it pays: for more than 40,000 columns and a long enough fit, judged by loss, C and the number of
        classes. Weights and certificate belong to X in any case. A dense X is never packed, nor does the search pack a
        store that fits in memory. "auto" also copies a CSR matrix that stores three quarters of its cells or more into
        a dense one, which is read faster.
    """),
    Parameter("memory_budget", "int or str", None, optional(_bytes)).means("""
        For a :class:`BlockStore`: bytes that the fit may use beside the interpreter and its libraries, as a number or
        text such as "500MB" or "2GB". None is half of the memory that is available. Rows that do not fit are trained
        in blocks. On a cluster: bytes of each worker, of whose memory limit None is half; where the stores do not fit,
        their rows stay on the disk.
    """),
    Parameter("block_options", "dict or BlockOptions", None, block_options).means("""
        For a :class:`BlockStore`, a dict with any of ``cache`` ("auto": rows that are likely to change stay in memory;
        "none" saves that), ``rounds`` (10: epochs per loaded block) and ``in_memory`` (None: whether to fit all rows
        in memory; None if they fit). :class:`hinge.BlockOptions` has these and more.
    """),
    _N_JOBS,
    _RANDOM_STATE,
    _VERBOSE,
)

_PENALTY = table(
    one_of("penalty", _penalty.NAMES).means(r"""
        "l2" is :math:`\tfrac12 \|w\|^2`. "l1" is :math:`\|w\|_1`, which leaves most weights at exactly 0; "elasticnet"
        a mixture, see ``l1_ratio``. Both are for rows in memory, with ``solver="auto"``, those of a
        :class:`BlockStore` that fits ``memory_budget`` included; more than two classes are each fitted against the
        rest, or with the logistic loss and ``multi_class="multinomial"`` all in one problem.
        For the hinge "elasticnet" with ``l1_ratio=1`` stands for "l1", which scikit-learn refuses there.
    """),
    Parameter("l1_ratio", "float", None, _penalty.share).means(r"""
        With ``penalty="elasticnet"``: the share r of the absolute values in
        :math:`\sum_j f_j (r |w_j| + \tfrac{1-r}{2} w_j^2)`, from 0 to 1.
    """),
    Parameter("penalty_factors", "array-like of shape (n_features,)", None, _penalty.factors).means("""
        The f of that sum, at least 0: 0 does not penalise a feature, infinity leaves it out. None is 1 for all. Sums
        are not rescaled. With ``degree=2`` one for each weight.
    """),
    Parameter("positive", "bool", False, truth).means("Whether no weight may be below 0. The intercept may."),
    Parameter("bounds", "pair of float or array-like of shape (n_features,)", None, _penalty.bounds).means("""
        Smallest and largest weight, each for all features or one for each; infinity is no limit. They hold exactly.
        With ``degree=2`` one for each weight.
    """),
)

_KEPT = table(
    Parameter("keep_coefs", "bool", False, truth).means("""
        Whether the :class:`hinge.CSearch` has the nonzero weights of every fold at every C as ``coefs``, with a penalty
        other than the squares; :meth:`hinge.CSearch.stability` needs them. Costs 12 bytes per nonzero weight.
    """),
    Parameter("max_drop", "float", None, optional(positive)).means("""
        The search ends behind the first C whose mean score is this much below the best so far, without refinement. On
        a path of sparse models large C are the dear ones, and of no use once the score falls.
    """),
)

_SEARCHED_PENALTY = table(
    _PENALTY,
    _KEPT,
    Parameter("l1_ratio", "float or list of float", None, _penalty.shares(_penalty.share)).means(r"""
        With ``penalty="elasticnet"``: the share r of the absolute values in
        :math:`\sum_j f_j (r |w_j| + \tfrac{1-r}{2} w_j^2)`, from 0 to 1. Of a list each is searched, on the same
        folds; the best score chooses, the first in the list among equals.
    """),
)

_C = Parameter("C", "float", 1.0, positive).means("Cost of training errors.")

_CHECKPOINT = Parameter("checkpoint", "path-like", None, optional(_checks.path)).means("""
    For a :class:`BlockStore`, and in :mod:`hinge.dask`: file that keeps the state of the fit, and continues it to the
    same bits after a kill. One fit at a time uses it; a file of another kind is refused and kept.
    """)

_SVM = table(
    one_of("loss", ("squared_hinge", "hinge", "modified_huber")).means(r"""
        :math:`\max(0, 1-m)^2` or :math:`\max(0, 1-m)`; "modified_huber" is the former for :math:`m \ge -1` and
        :math:`-4m` below, so that mislabelled rows pull no harder the further off they are.
    """),
    one_of("multi_class", ("ovr", "crammer_singer")).means(r"""
        "ovr" fits each of more than two classes against the rest. "crammer_singer" fits all classes, also two, as one
        problem: :math:`\tfrac12 \sum_m \|w_m\|^2 + C \sum_i v_i \max_m (1_{m \ne y_i} + f_m(x_i) - f_{y_i}(x_i))`,
        by the sequential dual method, and by Newton steps where that is too slow and classes times columns are at
        most 1,600; as in scikit-learn, ``loss`` is then not looked at. The solver must be "auto" or "dual_cd", the
        degree 1. A :class:`BlockStore` that does not fit ``memory_budget`` is trained on block by block; the budget
        counts the weights of all classes and three positive dual variables per row, more come on top.
    """),
)

_SOLVER = one_of("solver", SEARCH_SOLVERS).means("""
    "dual_cd" is dual coordinate descent with shrinking, "newton" is truncated Newton in the primal (through smooth
    approximations for the hinge). "auto" chooses by shape and loss, and hands a dual fit that stalls over to Newton.
    For comparison: "dual_cd_permuted", which visits all rows in every epoch, without shrinking, and
    "dual_cd_online", which draws one random row at a time. Fits and searches of a :class:`BlockStore` that is larger
    than ``memory_budget`` are "dual_cd" or "newton"; "auto" takes Newton on tables, unless
    ``block_options`` say how to descend.
    """)

_EVERY_SOLVER = one_of("solver", SOLVERS).means(
    f"""{_SOLVER.text}
Also "primal_cd", coordinate descent in the primal (squared hinge only), and "cutting_plane" (hinge only)."""
)

_SEARCH = table(
    Parameter("cv", "int, splitter or iterable", 5, unchecked).means("""
        Number of stratified folds of shuffled rows (seeded by ``random_state``), any scikit-learn splitter, or an
        iterable of (train, test) row numbers or masks. A row may be held out several times, or never.
        scikit-learn does not shuffle for a number: on rows in file order, which are rarely in random order, that
        chooses a wrong C (w8a: 1e-6 instead of 16). With ``groups``, a number keeps the rows of a group together
        (StratifiedGroupKFold, shuffled). A class of fewer rows than folds is missing in some held-out parts, the only
        row of a class is in every training part, and there are no more folds than rows of the largest class: each with
        a warning.
    """),
    Parameter("scoring", "str, callable, list, tuple or dict", None, unchecked).means("""
        Any scikit-learn scorer of classifiers by name or as a callable; several as a list of those or as a dict from
        names; a callable may also return a dict of scores. None is accuracy. A scorer sees an estimator that knows
        the decision values of the held-out rows (and probabilities, for the logistic loss); its X are positions in
        the held-out part. Every scorer is tried on every fold before the search begins. The method ``score`` of an
        estimator uses the one that chooses C.
    """),
    Parameter("choose_by", "str", None, unchecked).means("""
        Name of the scorer that chooses C; None is the first. A list names its scorers by themselves or their metric,
        a single callable has the name "score".
    """),
    one_of("choose", CHOICES).means("""
        "best" chooses the best mean score over folds and the smallest C among equals, "one_se" the smallest C whose
        mean score is within one standard error of the best (see :attr:`hinge.CSearch.std_error`).
    """),
    Parameter("Cs", "int or array-like of shape (n_Cs,)", None, optional(_costs)).means("""
        The values of C to visit, in rising order, instead of the range that ``C_min``, ``C_max`` and ``ratio`` give;
        ``stop`` may leave out the last ones. A number means as many values evenly spaced in log C from 1e-4 to 1e4, as
        in scikit-learn's LogisticRegressionCV.
    """),
    Parameter("C_min", "float", None, optional(positive)).means(
        "First value of C; None computes the lower bound of Chu et al. (eq. 21 or 22), rounded down to a power of two."
    ),
    Parameter("C_max", "float", _native.DEFAULT_C_MAX, positive).means("Limit of C."),
    Parameter("ratio", "float", _native.DEFAULT_RATIO, _ratio).means("Factor between values of C, above 1."),
    Parameter("refine", "int", 0, at_least(0)).means("""
        Rounds of bisection once the range is done: each visits the middle, in log C, of the intervals on both sides of
        the best C.
    """),
    one_of("stop", ("exact", "unchanged", "gradient", "liblinear")).means("""
        When to end before the last value: "exact" as soon as it is known that every solution is accurate enough at all
        values up to the last, "unchanged" after three successive values without a change (the form of eq. 24 of Chu
        et al.; what a change is, the stop of the fits says, for Newton eq. 28), "liblinear" after five, as LIBLINEAR's
        ``-C`` counts. "gradient" is eq. 24 itself: at three successive values the solution of the value before has a
        gradient of at most ``tol`` times that at zero. It ends earlier, above all where a class is rare, and better
        values may come after it; for smooth losses in memory, by Newton's method.
    """),
    Parameter("time_limit", "float", None, optional(positive)).means("""
        Seconds after which the search ends with what is finished; an estimator is then fitted at the best C so far.
    """),
    Parameter("resume", "path-like", None, optional(_checks.path)).means("""
        Journal of the search: a record per finished C is added to this file, and what it holds already is not
        computed again. A search that was killed continues to the same bits. The journal of other data, splits, values
        of C or options of the fits is refused, and any other file, which is kept; scorers, the rule of choice, limits
        of time and threads may change. One search at a time uses a journal: a second one gets an error.
    """),
    Parameter("keep_decisions", "bool", False, truth).means("""
        Whether the :class:`hinge.CSearch` has the out-of-fold decision values at the chosen C as ``decisions``. Costs
        n_samples numbers per binary problem, with "one_se" once for each C that is better than all smaller ones.
    """),
    _RANDOM_STATE.means("Seed of the folds and of the visiting order; None is a fixed seed."),
    _VERBOSE.means("""
        1 shows a progress bar of the search on a terminal (a line per C elsewhere), 2 lines with details, on standard
        error. The logger ``hinge`` gets a record per C at level INFO in any case, details at level DEBUG.
    """),
)

_SELECT_TOL = Parameter("select_tol", "float", _native.DEFAULT_SEARCH_TOL, positive).means("""
    Accuracy of the fits of the search. Newton: norm of the gradient at most this times ``min(pos, neg) / n`` times its
    norm at zero weights (eq. 28 of Chu et al.), and with ``stop="exact"`` a further step where the objective may be
    more than this share of it above its minimum. Other solvers: relative duality gap at most a tenth of this. With
    ``solver="auto"`` and a smooth loss, Newton may take over from others at larger values of C.
    """)

_SEARCH_AND_FIT = table(
    _FIT,
    _SOLVER,
    _SEARCH,
    _SELECT_TOL,
    _FIT["tol"].means("Relative duality gap at which the final fit stops."),
)

_DESCENT = table(
    one_of("loss", ("hinge", "squared_hinge", "modified_huber", "logistic")).means(r"""
        The other losses begin with shorter steps, :math:`1/(\lambda (t + t_0))`, with :math:`t_0` the largest curvature
        of the loss times the largest squared norm of a row over :math:`\lambda`.
    """),
    Parameter("C", "float", None, optional(positive)).means("Cost of training errors, instead of ``lam=None``."),
    Parameter("lam", "float", 1e-4, optional(positive)).means(
        r":math:`\lambda`. Equals ``1 / (n C)`` for n rows of weight 1."
    ),
    Parameter("batch_size", "int", 1, at_least(1)).means(
        "Rows per step, drawn with replacement with the probability of their weight, unless ``replace=False``."
    ),
    Parameter("replace", "bool", True, truth).means("""
        False draws the rows of a step without replacement: a subset, each as likely as any other, whose slopes count by
        the rows' weights. A row of weight 2 is then no longer the row twice.
    """),
    Parameter("eta", '{"pegasos", "root", "constant"} or callable', "pegasos", _step_size).means(r"""
        Length of step t: :math:`1/(\lambda t)`, ``eta0 / sqrt(t)``, ``eta0``, or a function of t = 1, 2, ... (a
        Python call for each step).
    """),
    Parameter("eta0", "float", 1.0, positive).means("See ``eta``."),
    Parameter("projection", "bool", True, truth).means(
        "Whether to scale the weights back into the ball that holds the optimum."
    ),
    one_of("average", ("suffix", "all", "none")).means(
        "The result: the mean of the last third to half of the iterates, of all, or the last iterate."
    ),
    Parameter("tol", "float", _native.DEFAULT_DESCENT_TOL, positive).means("Relative duality gap at which to stop."),
    Parameter("objective_tol", "float", None, optional(positive)).means("""
        Relative change of the objective between two looks (after 1, 2, 3, 4, 6, 8, 12, ... epochs) at which to stop.
    """),
    Parameter("step_tol", "float", None, optional(positive)).means(
        "Sum of the lengths of the last ``window`` steps at which to stop."
    ),
    one_of("step_length", ("whole", "loss")).means("""
        What ``step_tol`` adds up: by how much weights and intercept move, or the loss part of a step, its length times
        the norm of the mean of the slopes of its rows times the rows, as in Schmidt-Thieme's lecture: it is 0 where all
        rows have reached their margins.
    """),
    Parameter("window", "int", 100, at_least(1)).means("See ``step_tol``."),
    _FIT["max_iter"].means("Limit of epochs; an epoch draws as many rows as there are, at least 1024."),
    _FIT["fit_intercept"].means("""
        Whether to fit an intercept. It is not penalised, and the exact best one for the weights at each look and in the
        end.
    """),
    _INTERCEPT_SCALING,
    _CLASS_WEIGHT,
    _FIT["presolve"].means("""
        Whether steps work on a packed copy of a sparse X, which has the same optimum, see :class:`hinge.LinearSVC`;
        "auto" does so where it pays. ``partial_fit`` and block stores take X as it is.
    """),
    _FIT["memory_budget"].means("""
        Bytes for a fit on a block store, as a number or text such as "500MB"; None is half of the memory that is
        available. Draws from larger blocks are nearer to draws from all rows.
    """),
    _N_JOBS,
    _RANDOM_STATE,
    _VERBOSE,
)

LINEAR_SVC = table(
    _FIT,
    _C,
    _SVM,
    _EVERY_SOLVER,
    _PENALTY,
    Parameter("dual", '{"auto", True, False}', "auto", _auto_or_truth).means("""
        By scikit-learn's name: True asks for dual coordinate descent; "auto" and False leave the choice to ``solver``.
        As there, False does not go with the hinge.
    """),
    Parameter("sparse_coef", "bool", False, truth).means("""
        Whether ``coef_`` is a CSR matrix. Classes or labels are then fitted one by one in each thread, so that memory
        does not grow with classes times features. Predictions look its columns up once: values may be changed in
        ``coef_.data``, for other columns assign another matrix.
    """),
    Parameter("sparse_tol", "float", 1e-3, not_negative).means("""
        With ``sparse_coef``, weights are rounded to single precision and small ones set to zero as long as that raises
        the objective of a class by at most this share, measured on the training data; 0 keeps all as they are. The
        certificate is that of the weights that are left.
    """),
    _CHECKPOINT,
)

_MULTI_CLASS = one_of("multi_class", ("auto", "multinomial", "ovr")).means(r"""
    What more than two classes are. "multinomial": one problem,
    :math:`\tfrac12 \sum_k \|w_k\|^2 + C \sum_i v_i (\log \sum_k e^{f_k(x_i)} - f_{y_i}(x_i))`, whose
    probabilities are the softmax of the decision values. "ovr": each class against the rest. "auto": "multinomial", as
    in scikit-learn, but "ovr" with another penalty than the squares, and for the labels of a matrix y, which refuse
    "multinomial". Two classes are the same problem by any name.
    """)

_LOGISTIC = table(
    one_of("solver", (*SEARCH_SOLVERS, *_sklearn_names.SKLEARN_SOLVERS)).means(f"""{_SOLVER.text}
A solver of scikit-learn's name asks for the problem that it solves there, solved as by "auto", and for scikit-learn's
conventions: the intercept is free whatever ``intercept_scaling`` is ("liblinear" penalises it, with 1 for None, and
fits each class against the rest), weights are of single precision where X is, and ``tol`` bounds the gradient of the
mean objective, which asks for a relative duality gap of ``tol**2``."""),
    _PENALTY["penalty_factors"],
    _PENALTY["positive"],
    _PENALTY["bounds"],
    Parameter(
        "penalty", '{"l1", "l2", "elasticnet", None, "deprecated"}', "deprecated", _sklearn_names.penalty
    ).means(r"""
        By scikit-learn's name: "l2", :math:`\tfrac12 \|w\|^2`; "l1", :math:`\|w\|_1`, which leaves most weights at
        exactly 0; "elasticnet", a mixture by ``l1_ratio``; None for none, which is ``C=inf``. "deprecated", their
        default, leaves it to ``C`` and ``l1_ratio``. "l1" and "elasticnet" are for a matrix in memory. With them
        ``multi_class="auto"`` is "ovr", but "multinomial" with a solver of scikit-learn's name other than "liblinear".
    """),
    Parameter("dual", "bool", False, truth).means("""
        True asks for dual coordinate descent. Of scikit-learn's solvers, only "liblinear" goes with it.
    """),
    Parameter("tol", "float", _native.DEFAULT_TOL, _sklearn_names.or_zero(positive)).means("""
        Relative duality gap at which the fit stops, above 0. With a solver of scikit-learn's name the gap is the square
        of it, or 1e-12 if that is larger.
    """),
)

LOGISTIC_REGRESSION = table(
    _FIT,
    _LOGISTIC,
    _MULTI_CLASS,
    Parameter("C", "float", 1.0, _sklearn_names.cost).means("""
        Cost of training errors. Infinity means no penalty: the limit of the solutions, without a certificate. Its
        ``status`` is "unpenalised", or "separable" or "diverging" where there is no limit.
    """),
    Parameter("l1_ratio", "float", 0.0, _penalty.share).means(r"""
        Share r of absolute values in the penalty :math:`\sum_j f_j (r |w_j| + \tfrac{1-r}{2} w_j^2)`: 0 is "l2", 1 is
        "l1". Not looked at where ``penalty`` is one of these two.
    """),
    replace(_FIT["max_iter"], check=_sklearn_names.or_zero(at_least(1))).means(
        "Largest number of epochs or Newton steps of a fit; 0, with a solver of scikit-learn's name, leaves zeros."
    ),
    Parameter("warm_start", "bool", False, truth).means("""
        Whether a fit that ends at ``max_iter`` falls back on the model of the fit before, wherever that is the better
        one for the data at hand. With another penalty than the square alone (absolute values, factors, bounds), with
        ``solver="newton"``, or scikit-learn's "newton-cg" and "newton-cholesky", it also begins there: of small
        problems two fits of one Newton step each are one fit of two steps. Other solvers begin anew.
    """),
    _CHECKPOINT,
)

LINEAR_SVC_CV = table(
    _SEARCH_AND_FIT,
    _SVM,
    _SEARCHED_PENALTY,
    one_of("probability", METHODS)
    .or_none()
    .means("""
        If given, :func:`hinge.calibrate` fits probabilities to the out-of-fold decision values that the search has at
        the chosen C, without a further fit; ``predict`` is then the most probable class.
    """),
    Parameter("threshold", "str or callable", None, unchecked).means("""
        A scikit-learn scorer, for two classes: ``predict`` uses the decision value as threshold that is best for it on
        the out-of-fold decision values, instead of 0.
    """),
    Parameter("cost_matrix", "array-like of shape (n_classes, n_classes)", None, unchecked).means("""
        Cost of a row of class i (row) that is predicted as class j (column). Two classes: the threshold of the
        least total cost out of fold. More: needs ``probability``; ``predict`` is the class of least expected cost.
    """),
)

LOGISTIC_REGRESSION_CV = table(
    _SEARCH_AND_FIT,
    _MULTI_CLASS,
    _LOGISTIC,
    replace(_SEARCH["cv"], check=lambda name, value: 5 if value is None else value).means(f"""{_SEARCH["cv"].text}
None is 5. With a solver of scikit-learn's name, or ``use_legacy_attributes``, a number means folds in the order of the
rows, as there, unless there are ``groups``."""),
    _SEARCH["Cs"].means(f"""{_SEARCH["Cs"].text}
With a solver of scikit-learn's name, or ``use_legacy_attributes``, None is 10."""),
    _LOGISTIC["tol"].means("""
        Relative duality gap at which the final fit stops, above 0. With a solver of scikit-learn's name the gap is the
        square of it, or 1e-12 if that is larger.
    """),
    _KEPT,
    Parameter("l1_ratios", "array-like", None, _sklearn_names.l1_ratios).means("""
        Shares of absolute values in the penalty, see :class:`LogisticRegression`: each is searched, on the same folds,
        and the best score chooses, the first among equals. None is 0, the squares.
    """),
    Parameter("refit", "bool", True, truth).means("""
        False takes the mean of the weights and of C over the folds, each at its best C, as in scikit-learn, instead of
        a fit on all rows. There is then no certificate.
    """),
    Parameter("use_legacy_attributes", "bool", None, optional(truth)).means("""
        By scikit-learn's name: True or False fits every fold at every C to ``tol`` on its own, without the warm starts
        of the search, to keep all weights in ``coefs_paths_``; with a scorer that sees a fitted model and the held-out
        rows themselves. ``scores_``, ``coefs_paths_`` and ``n_iter_`` then have scikit-learn's old or new layout,
        ``C_`` is an array or a number. None keeps the table of the search only.
    """),
)

SELECT_C = table(
    _FIT,
    _SVM,
    _SEARCHED_PENALTY,
    _SOLVER,
    _SEARCH,
    one_of("loss", ("logistic", "squared_hinge", "hinge", "modified_huber")).means(
        "The loss of the model, as in :class:`hinge.LinearSVC`."
    ),
    one_of("multi_class", ("auto", "multinomial", "ovr", "crammer_singer")).means("""
        "ovr" fits each of more than two classes against the rest. "multinomial", for the logistic loss, and
        "crammer_singer", for the hinge, fit all as one problem, as :class:`LogisticRegression` and
        :class:`LinearSVC` do. "auto" is what these do by default: "multinomial" for the logistic loss with the squares
        as penalty, else "ovr".
    """),
    replace(_SELECT_TOL, name="tol"),
)

PEGASOS = _DESCENT

SUBGRADIENT = table(
    _DESCENT,
    replace(_DESCENT["C"], default=1.0).means(
        "Cost of training errors; equals ``1 / (n lam)`` for n rows of weight 1."
    ),
    replace(_DESCENT["lam"], default=None).means(r":math:`\lambda`, instead of ``C=None``."),
    _DESCENT["batch_size"]
    .or_none()
    .means("Rows per step, drawn at random; None takes all rows in each step, those of a block for a block store."),
    replace(_DESCENT["projection"], default=False),
    _DESCENT["max_iter"].means("Limit of epochs; a full batch makes one step in each."),
)

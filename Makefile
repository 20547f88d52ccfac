# Everything a developer or CI runs. Targets make what they need: a virtual environment, the build, the dependencies.
PYTHON ?= python3
VENV ?= .venv
MULTICORE ?= .venv-multicore
SNAPML ?= .venv-snapml
FLOORS ?= .venv-floors
WHEELS ?= .venv-wheels
DOCS ?= .venv-docs
BIN := $(VENV)/bin
RUST := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml

# Tests start hundreds of Pythons, and each would compile SciPy and scikit-learn anew where the environment says so.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-rust test-python test-floors test-checked hardening wheel docs bench bench-search papers lint format clean

demo: $(VENV)/.built
	$(BIN)/python -m hinge demo

test: test-rust test-python

# Random input is drawn anew by every plain "cargo test", but here it is the same every time: a change that fails did it.
test-rust: export PROPTEST_RNG_SEED ?= 1
test-rust:
	cargo test --no-default-features --quiet

# Two processes at once leave no processor for the threads of a BLAS: a twentieth of the time.
test-python: export OPENBLAS_NUM_THREADS ?= 1
test-python: $(VENV)/.built $(VENV)/.tools
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The same tests with the oldest versions of the dependencies that pyproject.toml allows.
test-floors: $(FLOORS)/.built
	$(FLOORS)/bin/python -m pytest

# The tests with every access checked that is unchecked in a release, and overflow of integers: ten minutes to build.
# Such a build warns when it is imported, which tests of the import itself do not allow.
test-checked: $(VENV)/.tools
	cargo test --profile checked --no-default-features --quiet
	cargo rustc --profile checked --lib --crate-type cdylib --features python
	rm -rf target/python-checked && cp -r python target/python-checked
	cp target/checked/libhinge.so target/python-checked/hinge/_native.abi3.so
	PYTHONPATH=$(CURDIR)/target/python-checked PYTHONWARNINGS="ignore:hinge was built" $(BIN)/python -m pytest -n 2 --dist worksteal \
	    -W "ignore:hinge was built:RuntimeWarning" --deselect tests/python/test_import.py \
	    --deselect tests/python/test_docs.py::test_import_is_silent \
	    --deselect tests/python/test_commands.py::test_predict_loads_neither_scipy_nor_scikit_learn \
	    --deselect tests/python/test_liblinear.py::test_files_are_read_without_scipy

# Hostile files, kills, limits of memory, threads and processes, numbers, long random runs: hours. Its record is
# benches/record/hardening.md.
CASES ?= 12000000
MINUTES ?= 120

hardening: $(VENV)/.built $(VENV)/.tools
	HINGE_CASES=$(CASES) cargo test --profile checked --no-default-features --test hardening -- --nocapture
	$(BIN)/python tests/hardening/kills.py --kills 100
	$(BIN)/python tests/hardening/memory.py
	$(BIN)/python tests/hardening/triples.py --cases 200000
	$(BIN)/python tests/hardening/tables.py --cases 20000
	$(BIN)/python tests/hardening/processes.py --rounds 200
	$(BIN)/python tests/hardening/extremes.py --cases 20000
	$(BIN)/python tests/hardening/cluster.py --kills 20
	$(BIN)/python tests/hardening/overlap.py --minutes $(MINUTES)

# A wheel for this machine and the source distribution into dist/, then both in fresh environments, the wheel without Rust.
# On Linux zig links against an old libc, so that the wheel runs anywhere.
OLD_LIBC := $(if $(filter Linux,$(shell uname -s)),--zig --compatibility manylinux_2_17)

wheel: $(WHEELS)/.installed
	rm -rf dist
	PATH="$(abspath $(WHEELS)/bin):$$PATH" maturin build --release --locked --out dist $(OLD_LIBC)
	$(WHEELS)/bin/maturin sdist --out dist
	$(if $(OLD_LIBC),$(WHEELS)/bin/auditwheel show dist/*.whl)
	$(PYTHON) tests/wheel.py dist/*.whl
	$(PYTHON) tests/wheel.py dist/*.tar.gz $(PYTHON)

# The site into site/: a broken link, a missing page or an unreadable docstring is an error.
docs: $(VENV)/.built $(VENV)/.tools $(DOCS)/.installed
	$(DOCS)/bin/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --jobs 2 -c docs . site

# All arenas in one table, bench/bench.md; beside the last release: make bench RELEASE=dist/hinge-....whl
bench: $(VENV)/.built $(VENV)/.tools $(MULTICORE)/.installed $(SNAPML)/.installed
	cargo bench --no-default-features
	$(BIN)/python benches/compare/bench.py --folder bench $(if $(RELEASE),--release $(RELEASE)) \
	    --multicore $(MULTICORE)/bin/python --snapml $(SNAPML)/bin/python
	$(BIN)/python benches/compare/growth.py
	$(BIN)/python benches/compare/presolve_cost.py

# The search for C against everybody else's, and with exact scores: hours. One set: make bench-search SETS=a9a
SETS ?= german,ijcnn1_val,madelon,a9a,w8a,20news,imdb,phishing_urls,flights,covtype
RECORD ?= search.csv

bench-search: $(VENV)/.built $(VENV)/.tools $(MULTICORE)/.installed
	$(BIN)/python benches/compare/search.py --sets $(SETS) --check --multicore $(MULTICORE)/bin/python --output $(RECORD)

# The figures of the papers into benches/record: hours. Small versions elsewhere: benches/papers/all.py --quick
papers: $(VENV)/.built $(VENV)/.tools
	$(BIN)/python benches/papers/all.py

lint: $(VENV)/.built $(VENV)/.tools
	cargo fmt --check
	cargo clippy --all-targets --no-default-features -- -D warnings
	cargo clippy --features python -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps --no-default-features
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest hinge._native

format:
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Rust sources newer than the build are compiled again; Python sources are used in place. Python compiles the files of
# packages when they are imported, pip would do so with all of them.
PIP := PIP_NO_COMPILE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --prefer-binary
MATURIN := VIRTUAL_ENV=$(abspath $(VENV)) PIP_NO_COMPILE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/maturin

# Packages are installed while the core is compiled, which leaves a processor idle now and then.
$(VENV)/.built: $(RUST)
	$(MAKE) --no-print-directory --jobs=2 $(VENV)/.compiled $(VENV)/.installed
	$(MATURIN) develop --release --locked
	touch $@

$(VENV)/.compiled: $(VENV)/.maturin $(RUST)
	@echo "Compiling the Rust core: about three minutes on two cores the first time, less after a change."
	$(MATURIN) develop --release --locked --skip-install
	touch $@

$(VENV)/.installed: $(VENV)/.maturin pyproject.toml
	@echo "Installing what is needed into $(VENV), a quarter of a minute."
	$(PIP) $$($(BIN)/python tests/floors.py --newest cli plot)
	touch $@

$(VENV)/.maturin:
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'maturin>=1.9.4,<2'
	touch $@

# What tests, checks and benches need besides.
$(VENV)/.tools: $(VENV)/.installed
	$(PIP) $$($(BIN)/python tests/floors.py --newest test bench dev)
	touch $@

$(FLOORS)/.built: $(FLOORS)/.installed $(VENV)/.built
	VIRTUAL_ENV=$(abspath $(FLOORS)) $(BIN)/maturin develop --release --locked
	touch $@

$(FLOORS)/.installed: pyproject.toml tests/floors.py
	$(PYTHON) -m venv --clear $(FLOORS)
	$(FLOORS)/bin/python tests/floors.py > $(FLOORS)/requirements.txt
	$(FLOORS)/bin/python -m pip install --quiet --requirement $(FLOORS)/requirements.txt
	touch $@

$(WHEELS)/.installed:
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install --quiet 'maturin[zig]>=1.9.4,<2' auditwheel
	touch $@

# Sphinx in an environment of its own, which finds the package and its dependencies in the other one.
$(DOCS)/.installed: pyproject.toml $(VENV)/.installed
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(DOCS)/bin/python -m pip install --quiet --group docs
	$(BIN)/python -c "import site; print('import site; site.addsitedir(%r)' % site.getsitepackages()[0])" \
	    > "$$($(DOCS)/bin/python -c 'import site; print(site.getsitepackages()[0])')/hinge-docs.pth"
	touch $@

# Multi-core LIBLINEAR owns the module name of LIBLINEAR, so it lives apart.
$(MULTICORE)/.installed:
	$(PYTHON) -m venv $(MULTICORE)
	$(MULTICORE)/bin/python -m pip install --quiet liblinear-multicore==2.50.0 numpy scipy
	touch $@

# Without a wheel for this Python the bench runs without it, and says so.
$(SNAPML)/.installed:
	$(PYTHON) -m venv $(SNAPML)
	-$(SNAPML)/bin/python -m pip install --quiet snapml==1.17.2
	touch $@

clean:
	rm -rf $(VENV) $(MULTICORE) $(SNAPML) $(FLOORS) $(WHEELS) $(DOCS) dist target bench site docs/api docs/generated

# The Glass Transformer. `make` alone lists the targets; each is plain shell one could type.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHAPTERS ?= $(sort $(wildcard book/[0-9]*.ipynb))
# Tests at a time: more than two cores, since browsers and graders often wait.
WORKERS ?= 3
CACHE := _build/.jupyter_cache
EXPLORERS := code/explorers

# These models are tiny: one thread each is faster, and leaves the other cores to other work.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help book test bundle serve zip pdf repository chapters exercises lint links bench launch clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The environment, made again only when what it is made from has changed.
$(VENV)/installed: requirements.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

# What chapters run can change their outputs: then nothing is used that was executed or read before.
RUN := $(shell find code/glassformer \
	\( -name '*.py' -o -name '*.json' -o -name '*.safetensors' -o -name '*.txt' \) \
	! -name 'site*' ! -name 'cli*' ! -path '*/exercises/*' ! -path '*/grading/*')
_build/package-seen: $(RUN)
	rm -rf $(CACHE) _build/.doctrees
	@mkdir -p _build && touch $@

# What makes pages of chapters can change every page; Sphinx looks for changed texts alone.
SHOW := $(shell find code/glassformer/site* code/glassformer/explorers/static book/_static -type f)
_build/pages-seen: $(SHOW)
	rm -rf _build/.doctrees
	@mkdir -p _build && touch $@

# Chapters that changed are executed on all cores into the cache that the build then reads.
book: $(VENV)/installed _build/package-seen _build/pages-seen  ## Execute the chapters and build the site, strictly
	yes | $(BIN)/jcache notebook -p $(CACHE) add $(CHAPTERS) >/dev/null
	$(BIN)/jcache project -p $(CACHE) execute -e local-parallel -t 300
	$(BIN)/jupyter-book build -W --keep-going .
	@echo
	@echo "Open $(CURDIR)/_build/html/index.html"

test: $(VENV)/installed $(EXPLORERS)/node_modules/.installed  ## Run the whole test suite: chapters and browser included
	@$(BIN)/python -m glassformer.chromium
	$(BIN)/python -m pytest -n $(WORKERS) --nbval tests book exercises

# The explorers' tools, installed again only when their lock file has changed.
$(EXPLORERS)/node_modules/.installed: $(EXPLORERS)/package-lock.json
	cd $(EXPLORERS) && npm ci
	@touch $@

bundle: $(EXPLORERS)/node_modules/.installed  ## Build the explorers' scripts and style sheet
	cd $(EXPLORERS) && npm run --silent build

serve: book  ## Build, then serve the site on this machine, at port 8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

zip: book  ## Build, then pack the site into one file to unpack and read from disk
	$(BIN)/python -m glassformer.site_zip _build/html _build/the-glass-transformer.zip

# Handed over as it was typed: neither make nor the shell may read anything into it.
unexport URL
repository: export ADDRESS = $(if $(findstring command,$(origin URL)),$(value URL))
repository: $(VENV)/installed  ## Set the course's public address everywhere (URL=https://…)
	@$(BIN)/python -m glassformer.repository -- . "$$ADDRESS"

pdf: $(VENV)/installed  ## Build, then print the book into one PDF, with Chromium or Chrome
	@$(BIN)/python -m glassformer.chromium
	@$(MAKE) --no-print-directory book
	$(BIN)/python -m glassformer.site_pdf _build/html _build/the-glass-transformer.pdf

chapters: $(VENV)/installed  ## Execute the notebooks again, in place (CHAPTERS=book/… for some)
	$(BIN)/python -m glassformer.notebooks $(CHAPTERS)

exercises: $(VENV)/installed  ## Write the exercise notebooks again from their exercises
	$(BIN)/python -m glassformer.exercises.notebooks exercises

lint: $(VENV)/installed  ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check code tests

links: book  ## Build, then ask for every link that leaves the site (needs a network)
	$(BIN)/python tests/check_links.py

bench: $(VENV)/installed  ## Measure speed on this machine, next to peers
	$(BIN)/python tests/bench.py

launch: $(VENV)/installed  ## Run every notebook in a fresh environment, as Binder and Colab do
	$(BIN)/python tests/fresh.py

clean:  ## Remove what was built; the environment stays
	rm -rf _build build .pytest_cache .ruff_cache .hypothesis

# Commands for developers of Ferry. `make help` lists them.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# A cloud build of a function; template.yaml's build targets use it too. The
# template's parameter Architecture must be the same, as `make deploy` sees to.
ARCHITECTURE ?= $(or $(patsubst Architecture=%,%,$(filter Architecture=%,$(SET))),arm64)
CLOUD = CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCHITECTURE:x86_64=amd64) go build -tags lambda.norpc -trimpath -buildvcs=false -ldflags "-s -w"

# This machine's processor, as AWS names it.
MACHINE = $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)

# The race detector, which needs a C compiler. SQLite is C turned into Go, guards itself with locks and would
# take half of the time. `make lint` has vetted the tests.
RACE = CGO_ENABLED=1 GORACE=atexit_sleep_ms=10 go test -vet=off -race -gcflags=modernc.org/sqlite/lib=-race=false

# It runs where goroutines meet, in all packages but these. They start none and keep nothing that two requests
# share: they read an input, or watch the template, documents and other programs from outside.
CALM = $(addprefix ferry/,infra/deploy infra/invoke infra/stack infra/stack/emulated shared/contact \
  shared/envelope shared/fault shared/openapi shared/table shared/table/dynamo shared/web/static_test shared/wire)

# Nor do they meet in these tests, which do one thing after another, thousands of times.
IN_TURN = TestAnswersAndStoredItemsDoNotChange|TestEachCallMayFail|TestNoToolDestroysWhatDamageLeft

# What test-pages tests whole, one after the other; test-race leaves it out, as its browsers would hold up all others.
# test-aws runs three of its tests, for the store of the cloud.
IN_BROWSER = ferry/shared/web/browser

# What test-aws tests whole; test-race leaves it out.
ON_AWS = $(addprefix ferry/,infra/invoke infra/stack infra/stack/emulated shared/blob/s3 shared/table/dynamo)
PACKAGES = $(filter-out ferry/functions/% $(IN_BROWSER),$(shell go list ./...))

# The command ferry: one file that needs no system library. `ferry version` tells the commit that Go finds.
BUILD = CGO_ENABLED=0 go build -trimpath -ldflags "-s -w"
FERRY = $(BUILD) -buildvcs=auto $(SHOW) -o bin/ferry ./infra/ferry

# What a release has. On Windows, ferry is the client alone.
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

FUNCTIONS = $(notdir $(wildcard functions/*))

# The tools that check the code, kept by their versions outside the checkout, as infra/awslocal keeps its own.
CACHE = $(or $(FERRY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ferry)
LINT = $(CACHE)/lint-$(shell { go version; cat infra/lint/go.sum; } | cksum | cut -d' ' -f1)
SCRIPTS = $(CACHE)/scripts-$(shell cksum < infra/lint/scripts/package-lock.json | cut -d' ' -f1)

.PHONY: help run test test-race test-aws test-alone test-pages fuzz lint scripts types build release bench deploy sam-local clean clients

help: ## List the commands.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

run: SHOW = -v
run: ## Run the whole service on this machine (data in ./.ferry; FERRY_ADDR, FERRY_DATA ... as in `ferry serve --help`).
	@echo "building ferry: the first time takes two to five minutes, and says which packages are done ..." >&2
	@$(FERRY)
	@exec bin/ferry serve

test: ## Run the tests; they need nothing but Go.
	@command -v chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable >/dev/null || echo "no chromium is installed: the pages are not tried in a browser" >&2
	@echo "the first time takes 10 to 25 minutes: first of building, whose packages are listed, then of tests, with a line for each package ..." >&2
	go build -v ./...
	go test -timeout 60m ./...

test-race: ## Run the tests that test-aws leaves out, with the race detector where goroutines meet; it needs a C compiler.
	$(RACE) -skip '^($(IN_TURN))$$' $(filter-out $(CALM) $(ON_AWS),$(PACKAGES))
	go test $(filter-out $(ON_AWS),$(filter $(CALM),$(PACKAGES)))
	go test -run '^($(IN_TURN))$$' ./shared/boot/apitest ./shared/boot/backup

test-aws: ## Test the cloud's backends, and the interface through a deployed stack, against stand-ins for AWS, which it installs.
	go run ./infra/awslocal -- $(SHELL) $(.SHELLFLAGS) "go test -p 4 -timeout 60m -count=1 -tags stack $(filter $(CALM),$(ON_AWS)) ./shared/api/...; \
	  go test -count=1 -tags stack -run DeployedStack ./shared/boot/apitest; \
	  go test -count=1 -tags stack -run '^Test(ALoginLasts|AFileIsSentByOneButton|ALinkIsOpened)' $(IN_BROWSER); \
	  $(RACE) -timeout 60m -count=1 $(filter-out $(CALM),$(ON_AWS)); go test -count=1 -run OfAStack ./infra/ferry"

test-alone: ## Measure memory and time, which other work would disturb.
	FERRY_TEST_ALONE=1 go test -count=1 -p 1 -run '^TestAlone' $$(grep -rl --include='*_test.go' '^func TestAlone' infra shared | xargs -n 1 dirname | sort -u | sed 's|^|./|')

# How long make fuzz tries inputs for each target, and in how many processes at a time.
FUZZTIME ?= 30s
FUZZERS ?= $(shell nproc)

# axe-core looks for faults of accessibility. Only these tests need it.
AXE = .tmp/axe/node_modules/axe-core
$(AXE):
	npm install --silent --no-audit --no-fund --prefix .tmp/axe axe-core@4.14.1

# Programs by others, with which tests do as the page on clients says.
CLIENTS = .tmp/clients/node_modules/uppy
$(CLIENTS):
	npm install --silent --no-audit --no-fund --prefix .tmp/clients axios@1.21.1 uppy@5.2.4

clients: $(CLIENTS) ## Install the clients from npm that tests try if they are there.

# Where pictures of the pages go; empty takes none.
PICTURES ?= $(CURDIR)/.tmp/pages

# The headless shell tries all, where it is installed. The whole browser then tries the attacks and what it reads and saves.
test-pages: $(AXE) $(CLIENTS) ## Try the pages in a browser at all sizes, in three languages and without scripts; pictures go to .tmp/pages (PICTURES=DIR for another folder).
	FERRY_PAGES=all FERRY_PICTURES=$(PICTURES) FERRY_AXE=$(CURDIR)/$(AXE) go test -count=1 -timeout 60m ./shared/web/browser
	FERRY_BROWSER=whole go test -count=1 -timeout 60m -run '^Test(No|Uploaded|Hostile|ALargeFile|ALinkIs)' ./shared/web/browser

# A package's targets share one build. Inputs are led by the coverage of their own package: the others are
# compiled already, without counters. Go 1.26 can take the end of that time for a failure (https://go.dev/issue/75804).
fuzz: ## Try random inputs on everything that reads what others write, FUZZTIME=30s each.
	@mkdir -p .tmp/fuzz
	@for folder in $$(grep -rl '^func Fuzz' --include='*_test.go' infra shared | xargs -n 1 dirname | sort -u); do \
	  go test -c -gcflags=ferry/$$folder=-d=libfuzzer -o .tmp/fuzz/test ./$$folder; \
	  for target in $$(.tmp/fuzz/test -test.list '^Fuzz'); do \
	    (cd $$folder; exec $(CURDIR)/.tmp/fuzz/test -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
	      -test.parallel $(FUZZERS) -test.fuzzminimizetime 1s -test.fuzzcachedir $(CURDIR)/.tmp/fuzz/inputs) < /dev/null > .tmp/fuzz/said 2>&1 || \
	      { grep -qx '    context deadline exceeded' .tmp/fuzz/said && ! grep -q 'Failing input' .tmp/fuzz/said; } || \
	      { cat .tmp/fuzz/said; exit 1; }; \
	    echo "$$folder $$target: $$(grep -oE 'execs: [0-9]+' .tmp/fuzz/said | tail -1)"; \
	  done; \
	done

$(LINT)/%:
	@mkdir -p $(LINT)
	go build -C infra/lint -o "$@.$$$$" $(TOOL_$*) && mv "$@.$$$$" "$@"
TOOL_staticcheck = honnef.co/go/tools/cmd/staticcheck
TOOL_govulncheck = golang.org/x/vuln/cmd/govulncheck

$(SCRIPTS):
	mkdir -p $@.$$$$ && cp infra/lint/scripts/package*.json $@.$$$$ && \
	  npm ci --silent --no-audit --no-fund --prefix $@.$$$$ && mv $@.$$$$ $@

lint: $(LINT)/staticcheck ## Check format, vet, staticcheck, known vulnerabilities, and the types and format of the pages' scripts.
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	go vet ./...
	go vet -tags stack ./...
	$(LINT)/staticcheck ./...
	@if curl -sfL -m 60 -o /dev/null "$${GOVULNDB:-https://vuln.go.dev}/index/db.json"; then \
	  $(MAKE) $(LINT)/govulncheck; $(LINT)/govulncheck ./...; \
	else echo "NOT CHECKED for known vulnerabilities: the database cannot be reached from here" >&2; fi
	go mod verify
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) scripts; \
	else echo "NOT CHECKED: the scripts of the pages, as node or npm is missing" >&2; fi

scripts: $(SCRIPTS)
	$(SCRIPTS)/node_modules/.bin/tsc -p infra/lint/scripts
	$(SCRIPTS)/node_modules/.bin/prettier --config infra/lint/scripts/package.json --log-level warn --check shared/web/static/*.js shared/web/static_test/*.mjs

sam-local: ## Try the functions in Docker with `sam local start-api` (port 3000), without an account; it prints a login and the address of an inbox.
	@$(FERRY)
	ARCHITECTURE=$(MACHINE) sam build -b .tmp/sam --parameter-overrides Architecture=$(MACHINE)
	go run ./infra/awslocal -- go run ./infra/invoke sam local start-api --warm-containers LAZY

build: ## Build ferry into bin/, and every function for the cloud into bin/functions/.
	$(FERRY)
	$(CLOUD) -o .tmp/functions/ ./functions/...
	@for f in $(FUNCTIONS); do mkdir -p bin/functions/$$f; mv .tmp/functions/$$f bin/functions/$$f/bootstrap; done

# This generates no code, and skips the bodies of functions that others wrote.
types: ## Type-check ferry for the platforms of a release, and the functions for both processors.
	go build -o .tmp/types ./infra/ci/types
	@for p in $(PLATFORMS); do .tmp/types $$p ./infra/ferry; done
	@for p in amd64 arm64; do .tmp/types linux/$$p -tags lambda.norpc ./functions/...; done

release: ## Build ferry for all platforms into bin/release/, with checksums. The same commit and Go give the same bytes.
	@rm -rf bin/release
	@for p in $(PLATFORMS); do \
	  out=bin/release/ferry-$${p/\//-}; [ "$${p%/*}" != windows ] || out+=.exe; echo "$$out"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(BUILD) -buildvcs=true -o $$out ./infra/ferry; \
	done
	@cd bin/release && { command -v sha256sum >/dev/null && sha256sum ferry-* || shasum -a 256 ferry-*; } > SHA256SUMS && cat SHA256SUMS

bench: ## Measure against controls in the same run (15 minutes, 40 GB of disk; QUICK=1 is shorter, OLD=PATH compares with another ferry).
	go run ./infra/bench $(if $(QUICK),-quick) $(if $(OLD),-old $(OLD))

# The stack; plain `sam deploy` takes the name in samconfig.toml.
STACK ?= ferry

deploy: ## Build the stack and deploy it with SAM (STACK=NAME for another than ferry, SET='PARAMETER=VALUE OTHER="A VALUE" ...' to set parameters).
	@region=$$(go run ./infra/deploy); \
	echo "building the functions and ferry (the first time takes some minutes) ..."; mkdir -p .tmp; \
	{ $(FERRY) && ARCHITECTURE=$(ARCHITECTURE) sam build; } > .tmp/build.log 2>&1 || { cat .tmp/build.log; exit 1; }; \
	sam deploy --region "$$region" --stack-name "$(STACK)" --parameter-overrides "Architecture=$(ARCHITECTURE) $${SET:-}"; \
	printf '%s\n' "" "To create the first user, who gets a temporary password:" "  bin/ferry user add NAME --stack $(STACK) --region $$region"

clean: ## Remove what was built, but not the data in ./.ferry.
	rm -rf bin .tmp .aws-sam

-include infra/stack/functions.mk

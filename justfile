# Everything a person types while working on planctl. `just` alone lists it.
# CI does not need just: .ci/run calls cargo itself.

_list:
    @just --list --unsorted

# Compile everything, tests included
build:
    cargo build --all-targets

# Run all tests; they bring their own private Postgres
test *ARGS:
    cargo test {{ARGS}}

# The suite without notifications: events of other processes are found by looking alone, only later
quiet:
    PLANCTL_NOTIFY=off cargo test -p planctl-store --test store -- --skip bell_rings
    PLANCTL_NOTIFY=off cargo test -p planctl-server -p planctl

# Drive the page in a real Chromium (CHROMIUM, else /usr/bin/chromium) by packages of npm: valid HTML, accessibility, decisions, live updates; pictures in target/page
page:
    cargo build --bin planctl
    cd crates/planctl/tests/page && npm install --no-package-lock --no-audit --no-fund --silent
    node crates/planctl/tests/page/drive.mjs "${CARGO_TARGET_DIR:-target}/debug/planctl" "${CARGO_TARGET_DIR:-target}/page"

# Keep histories of this version for later ones: writes those of tests/golden that are not there yet
golden:
    PLANCTL_GOLDEN=write cargo test -p planctl-store --test store golden

# The checks before a commit
check: lint
    cargo doc --no-deps --quiet
    cargo nextest run

# Play random conversations against the reference model; PLANCTL_SIM_SEED=N shows one, PLANCTL_SIM_SEEDS=N plays more, PLANCTL_SIM_FROM=N begins later
sim *ARGS:
    cargo test -p planctl-sim --test simulate -- --nocapture {{ARGS}}

# Play 100,000 random graphs with lying workers, and 2,000 written in DOT, JSON and markdown
sim-long:
    PLANCTL_SIM_SEEDS=100000 cargo test -p planctl-sim --test simulate -- --nocapture
    PLANCTL_SAME_PATHS=2000 cargo test -p planctl-lang --test lang same_path -- --nocapture

# Put the deliberate bugs into the engine's source, to change them or to fit them to new code; then `just mutants-save`
mutants-edit:
    @git diff --quiet HEAD -- crates/planctl-engine/src || { echo "commit what you changed in the engine first"; exit 1; }
    git apply --3way crates/planctl-mutated-engine/mutants.patch

# Take the deliberate bugs out of the engine's source again, and keep them as a patch
mutants-save:
    git add crates/planctl-engine/src
    git diff --cached HEAD -- crates/planctl-engine/src > crates/planctl-mutated-engine/mutants.patch
    git restore --source=HEAD --staged --worktree crates/planctl-engine/src

# What a push tries in a short form, at length: more seeds of faults, soaks, random runs, cheats, fuzzing. Takes about two hours
nightly:
    cargo nextest run --run-ignored only -E 'binary(nodes) & test(/^kill::.*seed_/)'
    cargo nextest run --run-ignored only -E 'binary(cli) & test(/^drafting::.*each_of_its_deeds/)'
    just sim-long
    just soak
    just chaos
    just outage
    just cheats
    just escapes
    just swaps
    just fuzz 600
    just fuzz-graphs 600
    just dist-check

# Kill and take up runs for MINUTES, with seeds never tried before; SOAK_SEED plays some again
soak MINUTES="10":
    SOAK_MINUTES={{MINUTES}} cargo test -p planctl --test nodes kill::soak -- --ignored --nocapture

# Three daemons, forty workers and a nemesis for MINUTES, with seeds never tried before; CHAOS_SEED plays some again
chaos MINUTES="10":
    CHAOS_MINUTES={{MINUTES}} cargo test -p planctl --test nodes chaos:: -- --ignored --nocapture

# The database away for MINUTES while a run goes on: the daemon stays, says so, and goes on by itself
outage MINUTES="10":
    OUTAGE_MINUTES={{MINUTES}} cargo test -p planctl --test nodes p12_after -- --ignored --nocapture

# Cheating workers, their honest twins and honest flows, in every isolation tier of this machine; `just cheats sec-34` tries one
cheats *ARGS:
    cargo test -p planctl --test cheats -- --include-ignored {{ARGS}}

# The published agents, installed into FOLDER, against model services of our own on loopback; PLANCTL_AGENTS_ONLY=claude tries one
agents FOLDER="/tmp/planctl-agents":
    npm install --no-fund --no-audit --prefix {{FOLDER}}/npm @anthropic-ai/claude-code@latest @openai/codex@latest @google/gemini-cli@latest opencode-ai@latest
    python3 -m venv {{FOLDER}}/venv && {{FOLDER}}/venv/bin/pip install --quiet aider-chat
    PLANCTL_AGENTS={{FOLDER}} cargo test -p planctl --test servers agents:: -- --ignored --nocapture

# The published conformance kit of MCP and the inspector, installed into FOLDER, against `planctl mcp` and the daemon's /mcp; needs Node 22
mcp FOLDER="/tmp/planctl-mcp":
    npm install --no-fund --no-audit --prefix {{FOLDER}} @modelcontextprotocol/conformance @modelcontextprotocol/inspector
    cargo build -p planctl
    crates/planctl/tests/mcp/kit/check "${CARGO_TARGET_DIR:-target}/debug/planctl" {{FOLDER}}

# Published MCP servers, installed into FOLDER, behind calls of a plan
tools FOLDER="/tmp/planctl-tools":
    npm install --no-fund --no-audit --prefix {{FOLDER}}/npm @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem
    python3 -m venv {{FOLDER}}/venv && {{FOLDER}}/venv/bin/pip install --quiet mcp-server-git
    PLANCTL_TOOL_SERVERS={{FOLDER}} cargo test -p planctl --test servers tools:: -- --ignored --nocapture

# The 16 ways in which processes try to outlive their command, 100 times each, in every isolation tier of this machine
escapes:
    cargo test -p planctl-harness --test processes -- --ignored --nocapture a15_one_hundred

# Files, links and folders swapped at 1 kHz while planctl verifies, approves and judges; CI makes 60 and 18 trials
swaps TRIALS="1000":
    SWAP_TRIALS={{TRIALS}} cargo test -p planctl-harness --test processes -- --nocapture swapped_at_1_khz
    SWAP_TRIALS={{TRIALS}} cargo test -p planctl --test cli -- --nocapture swapped_at_1_khz

# Cgroups of a command's own, in a virtual machine whose first process delegates one
cgroups:
    bash crates/planctl-harness/tests/cgroups-in-vm.sh

# Show the database that planctl uses here
db:
    cargo run --quiet -- db status

# Format the sources
fmt:
    cargo fmt

# Formatting and lints, warnings are errors
lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# planctl from source: `just run plan verify plans/hello.md`
run *ARGS:
    cargo run --quiet -- {{ARGS}}

# The main job in half a minute: no key, no network, no set-up
demo:
    cargo run -- demo

# The floor of this machine, and planctl's cost on top of it; `just bench tiers`: the cost of isolation
bench *ARGS:
    cargo bench -p planctl-server --bench steps -- {{ARGS}}

# The cost of each page, and of 50 open tabs and 200 loads a second to those who work beside them; needs a machine that does nothing else
bench-page:
    cargo bench -p planctl-server --bench steps -- pages

# The time that each isolation tier adds to starting one command, by how much is hidden from it
bench-isolation:
    cargo bench -p planctl-harness --bench harness -- tiers

# The time that a contract takes more since the files which git tracks are looked at around it, by how many there are
bench-gates:
    cargo bench -p planctl-harness --bench harness -- gates

# The cost of verifying as a plan grows: time per byte stays flat. First the language alone, then with the workspace
bench-verify *ARGS:
    cargo bench -p planctl-lang --bench verify {{ARGS}}
    cargo bench -p planctl-server --bench verify

# The cost of finding the tool for an intent among 10,000
bench-resolve *ARGS:
    cargo bench -p planctl-planner --bench resolve {{ARGS}}

# Processor time and memory of planctl itself in a drafting round of 20 steps, whose contracts are tried
bench-draft:
    cargo bench -p planctl --bench draft

# The time that a hook of an interactive agent takes: without a plan, beside a daemon, at a guard; needs a machine that does little else
bench-hooks:
    cargo bench -p planctl --bench hooks

# The cost of a step in graphs of 10 and of 5,000 nodes: by the engine alone, and with the database; the ratio is told
bench-graphs:
    cargo bench -p planctl-store --bench steps -- graphs

# Feed the reader and the lints with broken plans for SECONDS: no panic, no place outside the text, no blow-up
fuzz SECONDS="60":
    command -v cargo-fuzz > /dev/null || cargo install --locked cargo-fuzz@0.13.2
    mkdir -p target/fuzz/corpus
    cp --parents crates/planctl-lang/tests/fixtures/*.md examples/*/plan.md plans/*.md target/fuzz/corpus/
    cd crates/planctl-lang && RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none --target-dir ../../target/fuzz verify ../../target/fuzz/corpus -- -max_total_time={{SECONDS}} -max_len=16384 -timeout=3 -dict=fuzz/words.txt

# The same for graphs in DOT and JSON
fuzz-graphs SECONDS="60":
    command -v cargo-fuzz > /dev/null || cargo install --locked cargo-fuzz@0.13.2
    mkdir -p target/fuzz/graphs
    cp crates/planctl-lang/tests/fixtures/*.json target/fuzz/graphs/
    cd crates/planctl-lang && RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none --target-dir ../../target/fuzz graphs ../../target/fuzz/graphs -- -max_total_time={{SECONDS}} -max_len=16384 -timeout=3

# Draw the starter plans for docs/library.md
pictures:
    cargo build -p planctl
    for plan in plans/*_*.md; do cargo run --quiet -- graph render "$plan" --format svg > "docs/library/$(basename "$plan" .md).svg"; done

# The binary as it is shipped: target/release/planctl
release:
    cargo build --release -p planctl

# What people install, in target/dist: tarball, Debian package, wheel, npm package, checksums; see packaging/
dist: release
    rm -rf target/dist
    packaging/make target/release/planctl target/dist

# Validate the manifests of packaging/ by the schemas of Kubernetes and compose, and by systemd; the suite tries what they say of planctl
manifests:
    packaging/validate target/manifests

# Two daemons on two hosts (network namespaces, as root), Postgres by TLS, one host cut off in mid-work; and the manifests, on the binary
team:
    cargo test -p planctl --test nodes team:: -- --nocapture

# Install each of them in a clean place of its own, the Debian package and the container in a small Debian, and run the demo
dist-check: dist
    packaging/check target/dist

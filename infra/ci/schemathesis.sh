#!/usr/bin/env bash
# Calls a started service as its description says, and as it forbids, for about 90 seconds,
# and fails if an answer differs from the description or is a 5xx. All checks are on.
# The cases are the same on every machine, since their number ends the run, not the clock.
# schemathesis (requirements.txt) must be in the PATH; arguments go to it, such as
# --seed 2 for other cases, or --max-time 400 for more.
set -eu -o pipefail
cd "$(dirname "$0")/../.."

dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server"; wait "$server"; } || true; rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -o "$dir/ferry" ./infra/ferry

export FERRY_DATA="$dir/data" PASSWORD="a password to try"
for user in alice bob; do # bob is in the examples, as the user who gets files
  "$dir/ferry" user add $user --active --password-stdin --email $user@example.com <<< "$PASSWORD"
done
"$dir/ferry" serve --addr 127.0.0.1:0 --trust-proxy --no-demo --log text > "$dir/out" 2> "$dir/log" &
server=$!
until base=$(grep -om1 'http://[^ ]*/v1' "$dir/out"); do kill -0 "$server"; sleep 0.1; done
BEARER=$(curl -sSf -u "alice:$PASSWORD" -X POST "$base/auth/login" | grep -o '"bearer":"[^"]*' | cut -d'"' -f4)
export BEARER

config=$PWD/infra/ci/schemathesis.toml
export SCHEMATHESIS_HOOKS=$PWD/infra/ci/schemathesis_hooks.py
cd "$dir" # it keeps notes where it runs
schemathesis --config-file "$config" run "$base/openapi.json" --seed 1 \
  --phases examples,coverage,fuzzing,stateful --no-color "$@" || code=$?
if grep -m5 level=ERROR "$dir/log"; then
  echo "the service logged errors" >&2
  exit 1
fi
exit "${code:-0}"

#!/bin/sh
# sh examples/curl/order.sh (it wants curl 7.84 or newer)
set -eu
petstore=${PETSTORE_URL:-http://127.0.0.1:8080}
# An API key or a token, if the petstore asks for one.
credential=${CREDENTIAL:+--oauth2-bearer $CREDENTIAL}

# Prints the path of what was created. Each create has a key of its own: curl repeats it under this key, so it happens once.
create() {
  key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  curl -sSf $credential --retry 3 -H "Idempotency-Key: $key" --json "$2" -o /dev/null -w '%header{location}' "$petstore$1"
}

category=$(create /categories '{"name": "dogs"}')
pet=$(create /pets "{\"name\": \"Rex\", \"categoryId\": ${category##*/}}")

# As lines of JSON: the stock as it is, and each change as it happens. Without --max-time the stream has no end.
files=$(mktemp -d)
mkfifo "$files/events"
curl -sSfN $credential --max-time 30 -H 'Accept: application/x-ndjson' \
  "$petstore/events?types=inventory&petId=${pet##*/}&snapshot=true" >"$files/events" &
trap 'kill $! 2>/dev/null || true; rm -r "$files"' EXIT

while read -r event; do
  case $event in
  *'"status":"available"'*)
    echo 'Rex is available'
    order=$(create /store/orders "{\"petId\": ${pet##*/}}")
    ;;
  *'"status":"pending"'*)
    echo 'Rex is pending'
    curl -sSf $credential -X PATCH --json '{"complete": true}' -o /dev/null "$petstore/store/orders/${order##*/}"
    ;;
  *'"status":"sold"'*)
    echo 'Rex is sold'
    exit
    ;;
  esac
done <"$files/events"
exit 1

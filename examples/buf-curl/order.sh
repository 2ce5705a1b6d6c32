#!/bin/sh
# sh examples/buf-curl/order.sh: gRPC at the services, with the schema from server reflection
set -eu
port=${PORT_BASE:-8080}

call() { npx buf curl --protocol grpc --http2-prior-knowledge --timeout 30s -d "$2" "http://127.0.0.1:$1"; }
id() { sed -n 's/^ *"id": "\(.*\)",$/\1/p'; }

category=$(call $((port + 2))/petstore.category.v1.CategoryService/CreateCategory '{"category": {"name": "dogs"}}' | id)
pet=$(call $((port + 1))/petstore.pet.v1.PetService/CreatePet "{\"pet\": {\"name\": \"Rex\", \"categoryId\": $category}}" | id)

# The stock as it is, and each change as it happens. Without --timeout the stream has no end.
# It also ends when a heartbeat, which comes every 15 seconds, finds no reader.
files=$(mktemp -d)
mkfifo "$files/events"
trap 'rm -r "$files"' EXIT
watched="{\"petId\": [$pet], \"snapshot\": true}"
call $((port + 4))/petstore.inventory.v1.InventoryService/WatchInventory "$watched" >"$files/events" 2>&1 &

while read -r line; do
  case $line in
  *PET_STATUS_AVAILABLE*)
    echo 'Rex is available'
    order=$(call $((port + 3))/petstore.order.v1.OrderService/CreateOrder "{\"order\": {\"petId\": $pet}}" | id)
    ;;
  *PET_STATUS_PENDING*)
    echo 'Rex is pending'
    completed="{\"orderId\": $order, \"order\": {\"complete\": true}}"
    call $((port + 3))/petstore.order.v1.OrderService/UpdateOrder "$completed" >/dev/null
    ;;
  *PET_STATUS_SOLD*)
    echo 'Rex is sold'
    exit
    ;;
  *'"message":'*)
    echo "$line" >&2
    ;;
  esac
done <"$files/events"
exit 1

# pip install -r examples/python/requirements.txt, then: python examples/python/order_http.py
import json
import os
import uuid

import requests

PETSTORE = os.environ.get("PETSTORE_URL", "http://127.0.0.1:8080")


def ask(method, path, **more):
    # A stream says something every 15 seconds: after more without a word the connection is lost.
    answer = requests.request(method, PETSTORE + path, timeout=20, **more)
    if not answer.ok:
        fail(answer.json())
    return answer


def fail(error):
    raise SystemExit(f"{error['code']}: {error['message']}")


def create(path, body):
    """A new key each time. Sent again with the same one, if no answer came, it happens once."""
    return ask("POST", path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())}).json()


def watch(**query):
    """Server-Sent Events: each has its data in one line."""
    with ask("GET", "/events", params=query, stream=True) as answer:
        for line in answer.iter_lines():
            if not line.startswith(b"data: "):
                continue
            data = json.loads(line.removeprefix(b"data: "))
            if "code" in data:
                fail(data)
            yield data


category = create("/categories", {"name": "dogs"})
pet = create("/pets", {"name": "Rex", "categoryId": category["id"]})

for event in watch(types="inventory", petId=pet["id"], snapshot="true"):
    if event["type"] == "petstore.synced.v1":
        continue
    status = event["data"]["status"]
    print(f"{pet['name']} is {status}")
    if status == "available":
        order = create("/store/orders", {"petId": pet["id"]})
    elif status == "pending":
        ask("PATCH", f"/store/orders/{order['id']}", json={"complete": True})
    else:
        break

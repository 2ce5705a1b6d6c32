import json
import urllib.error
import urllib.request

import pytest


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@pytest.mark.parametrize("name", ["Rex", "Bello"])
def test_an_order_takes_the_pet(petstore, name):
    post(petstore + "/categories", {"name": "dogs"})
    assert post(petstore + "/pets", {"name": name, "categoryId": 1})["id"] == 1
    assert post(petstore + "/store/orders", {"petId": 1})["id"] == 1
    with pytest.raises(urllib.error.HTTPError, match="409"):
        post(petstore + "/store/orders", {"petId": 1})

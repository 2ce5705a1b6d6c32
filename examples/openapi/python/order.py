# pip install -r requirements.txt
# openapi-python-client generate --url http://127.0.0.1:8080/openapi.json --meta none --output-path petstore_client
# Then: python order.py
import os

from petstore_client import Client
from petstore_client.api.pets import create_category, create_pet
from petstore_client.api.store import create_order, get_inventory, update_order
from petstore_client.models import Error, NewCategory, NewPet, Order, OrderPatch

client = Client(
    base_url=os.environ.get("PETSTORE_URL", "http://127.0.0.1:8080"),
    raise_on_unexpected_status=True,
)


def answered(answer):
    if isinstance(answer, Error):
        raise SystemExit(f"{answer.code}: {answer.message}")
    return answer


def show():
    item = answered(get_inventory.sync(pet.id, client=client))
    print(f"{pet.name} is {item.status}")


category = answered(create_category.sync(client=client, body=NewCategory(name="dogs")))
pet = answered(create_pet.sync(client=client, body=NewPet(name="Rex", category_id=category.id)))
show()

order = answered(create_order.sync(client=client, body=Order(pet_id=pet.id)))
show()

answered(update_order.sync(order.id, client=client, body=OrderPatch(complete=True)))
show()

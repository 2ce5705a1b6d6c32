# pip install -r examples/python/requirements.txt && npx buf generate --template examples/python/buf.gen.yaml
# Then: python examples/python/order_grpc.py
import os
import uuid

import grpc
from petstore.category.v1.category_pb2 import NewCategory
from petstore.category.v1.category_service_pb2 import CreateCategoryRequest
from petstore.category.v1.category_service_pb2_grpc import CategoryServiceStub
from petstore.common.v1.pet_status_pb2 import PetStatus
from petstore.inventory.v1.inventory_service_pb2 import WatchInventoryRequest
from petstore.inventory.v1.inventory_service_pb2_grpc import InventoryServiceStub
from petstore.order.v1.order_pb2 import Order
from petstore.order.v1.order_service_pb2 import CreateOrderRequest, UpdateOrderRequest
from petstore.order.v1.order_service_pb2_grpc import OrderServiceStub
from petstore.pet.v1.pet_pb2 import NewPet
from petstore.pet.v1.pet_service_pb2 import CreatePetRequest
from petstore.pet.v1.pet_service_pb2_grpc import PetServiceStub

# The gateway's port. Those of the services follow it.
PORT = int(os.environ.get("PORT_BASE", "8080"))

pets = PetServiceStub(grpc.insecure_channel(f"127.0.0.1:{PORT + 1}"))
categories = CategoryServiceStub(grpc.insecure_channel(f"127.0.0.1:{PORT + 2}"))
orders = OrderServiceStub(grpc.insecure_channel(f"127.0.0.1:{PORT + 3}"))
inventory = InventoryServiceStub(grpc.insecure_channel(f"127.0.0.1:{PORT + 4}"))


category = categories.CreateCategory(
    CreateCategoryRequest(category=NewCategory(name="dogs")), timeout=10
).category
pet = pets.CreatePet(
    CreatePetRequest(pet=NewPet(name="Rex", category_id=category.id)), timeout=10
).pet

for message in inventory.WatchInventory(WatchInventoryRequest(pet_id=[pet.id], snapshot=True)):
    if not message.HasField("event"):
        continue
    status = message.event.item.status
    print(f"{pet.name} is {PetStatus.Name(status)}")
    if status == PetStatus.PET_STATUS_AVAILABLE:
        # A new key for each order. Sent again with the same one, if no answer came, it is placed once.
        key = str(uuid.uuid4())
        order = orders.CreateOrder(
            CreateOrderRequest(order=Order(pet_id=pet.id), request_id=key), timeout=10
        ).order
    elif status == PetStatus.PET_STATUS_PENDING:
        completed = UpdateOrderRequest(order_id=order.id, order=Order(complete=True))
        orders.UpdateOrder(completed, timeout=10)
    else:
        break

// npx buf generate --template examples/go/buf.gen.yaml from the root, then: go run ./grpc
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	categoryv1 "petstore.example/gen/petstore/category/v1"
	commonv1 "petstore.example/gen/petstore/common/v1"
	inventoryv1 "petstore.example/gen/petstore/inventory/v1"
	orderv1 "petstore.example/gen/petstore/order/v1"
	petv1 "petstore.example/gen/petstore/pet/v1"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// The ports of the services follow the gateway's.
func service(n int) *grpc.ClientConn {
	port, err := strconv.Atoi(cmp.Or(os.Getenv("PORT_BASE"), "8080"))
	if err != nil {
		log.Fatal(err)
	}
	insecure := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port+n), insecure)
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

func run(ctx context.Context) error {
	pets := petv1.NewPetServiceClient(service(1))
	categories := categoryv1.NewCategoryServiceClient(service(2))
	orders := orderv1.NewOrderServiceClient(service(3))
	inventory := inventoryv1.NewInventoryServiceClient(service(4))

	category, err := categories.CreateCategory(ctx, &categoryv1.CreateCategoryRequest{
		Category: &categoryv1.NewCategory{Name: proto.String("dogs")},
	})
	if err != nil {
		return err
	}
	pet, err := pets.CreatePet(ctx, &petv1.CreatePetRequest{
		Pet: &petv1.NewPet{Name: proto.String("Rex"), CategoryId: proto.Int64(category.Category.Id)},
	})
	if err != nil {
		return err
	}

	stream, err := inventory.WatchInventory(ctx, &inventoryv1.WatchInventoryRequest{
		PetId:    []int64{pet.Pet.Id},
		Snapshot: true,
	})
	if err != nil {
		return err
	}
	var orderID int64
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		item := message.GetEvent().GetItem()
		if item == nil {
			continue
		}
		fmt.Println(pet.Pet.Name, "is", item.Status)
		switch item.Status {
		case commonv1.PetStatus_PET_STATUS_AVAILABLE:
			// A new key for each order. Sent again with the same one, if no answer came, it is placed once.
			placed, err := orders.CreateOrder(ctx, &orderv1.CreateOrderRequest{
				Order:     &orderv1.Order{PetId: proto.Int64(pet.Pet.Id)},
				RequestId: proto.String(rand.Text()),
			})
			if err != nil {
				return err
			}
			orderID = placed.Order.GetId()
		case commonv1.PetStatus_PET_STATUS_PENDING:
			_, err := orders.UpdateOrder(ctx, &orderv1.UpdateOrderRequest{
				OrderId: orderID,
				Order:   &orderv1.Order{Complete: proto.Bool(true)},
			})
			if err != nil {
				return err
			}
		case commonv1.PetStatus_PET_STATUS_SOLD:
			return nil
		}
	}
}

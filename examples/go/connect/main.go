// npx buf generate --template examples/go/buf.gen.yaml from the root, then: go run ./connect
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	categoryv1 "petstore.example/gen/petstore/category/v1"
	"petstore.example/gen/petstore/category/v1/categoryv1connect"
	commonv1 "petstore.example/gen/petstore/common/v1"
	inventoryv1 "petstore.example/gen/petstore/inventory/v1"
	"petstore.example/gen/petstore/inventory/v1/inventoryv1connect"
	orderv1 "petstore.example/gen/petstore/order/v1"
	"petstore.example/gen/petstore/order/v1/orderv1connect"
	petv1 "petstore.example/gen/petstore/pet/v1"
	"petstore.example/gen/petstore/pet/v1/petv1connect"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx, cmp.Or(os.Getenv("PETSTORE_URL"), "http://127.0.0.1:8080")); err != nil {
		log.Fatalf("%s: %s", connect.CodeOf(err), err)
	}
}

func run(ctx context.Context, gateway string) error {
	categories := categoryv1connect.NewCategoryServiceClient(http.DefaultClient, gateway)
	pets := petv1connect.NewPetServiceClient(http.DefaultClient, gateway)
	orders := orderv1connect.NewOrderServiceClient(http.DefaultClient, gateway)
	inventory := inventoryv1connect.NewInventoryServiceClient(http.DefaultClient, gateway)

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
	defer stream.Close()
	for stream.Receive() {
		message := stream.Msg()
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
	return stream.Err()
}

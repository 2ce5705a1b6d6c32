// go tool oapi-codegen -config generate.yaml http://127.0.0.1:8080/openapi.json, then: go run .
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"petstore.example/petstore"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx, cmp.Or(os.Getenv("PETSTORE_URL"), "http://127.0.0.1:8080")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, gateway string) error {
	client, err := petstore.NewClientWithResponses(gateway)
	if err != nil {
		return err
	}
	category, err := client.CreateCategoryWithResponse(ctx, nil, petstore.NewCategory{Name: "dogs"})
	if err != nil {
		return err
	}
	if category.JSON201 == nil {
		return errors.New(string(category.Body))
	}
	pet, err := client.CreatePetWithResponse(ctx, nil, petstore.NewPet{Name: "Rex", CategoryId: *category.JSON201.Id})
	if err != nil {
		return err
	}
	if pet.JSON201 == nil {
		return errors.New(string(pet.Body))
	}
	show := func() error {
		stock, err := client.GetInventoryWithResponse(ctx, *pet.JSON201.Id, nil)
		if err != nil {
			return err
		}
		if stock.JSON200 == nil {
			return errors.New(string(stock.Body))
		}
		fmt.Println(pet.JSON201.Name, "is", stock.JSON200.Status)
		return nil
	}
	if err := show(); err != nil {
		return err
	}

	order, err := client.CreateOrderWithResponse(ctx, nil, petstore.Order{PetId: pet.JSON201.Id})
	if err != nil {
		return err
	}
	if order.JSON201 == nil {
		return errors.New(string(order.Body))
	}
	if err := show(); err != nil {
		return err
	}

	complete := true
	completed, err := client.UpdateOrderWithResponse(ctx, *order.JSON201.Id, nil, petstore.OrderPatch{Complete: &complete})
	if err != nil {
		return err
	}
	if completed.JSON200 == nil {
		return errors.New(string(completed.Body))
	}
	return show()
}

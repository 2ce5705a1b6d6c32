package main

import (
	"context"
	"errors"
	"log/slog"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"petstore/gen"
)

type inventoryDoc struct {
	PetID    int64  `bson:"_id"`
	Quantity int32  `bson:"quantity"`
	Status   string `bson:"status"`
}

func (d inventoryDoc) message() *gen.InventoryItem {
	return &gen.InventoryItem{PetId: d.PetID, Quantity: d.Quantity, Status: d.Status}
}

type inventoryServer struct {
	gen.UnimplementedInventoryServiceServer
	entries *mongo.Collection
	pets    gen.PetServiceClient
}

func registerInventory(server *grpc.Server, db *mongo.Database) error {
	pets, err := dial("pet")
	if err != nil {
		return err
	}
	gen.RegisterInventoryServiceServer(server, &inventoryServer{
		entries: db.Collection("inventory"), pets: gen.NewPetServiceClient(pets),
	})
	return nil
}

func (s *inventoryServer) GetInventoryItem(ctx context.Context, in *gen.GetInventoryItemRequest) (*gen.InventoryItem, error) {
	doc, err := s.read(ctx, in.PetId)
	if err != nil {
		return nil, err
	}
	return doc.message(), nil
}

func (s *inventoryServer) read(ctx context.Context, id int64) (doc inventoryDoc, err error) {
	if err = s.entries.FindOne(ctx, bson.D{{"_id", id}}).Decode(&doc); errors.Is(err, mongo.ErrNoDocuments) {
		err = petNotFound(id)
	}
	return doc, err
}

func (s *inventoryServer) Reserve(ctx context.Context, in *gen.Units) (*gen.InventoryItem, error) {
	enough := bson.D{{"_id", in.PetId}, {"status", "available"}, {"quantity", bson.D{{"$gte", in.Quantity}}}}
	doc, err := s.add(ctx, enough, -in.Quantity)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, s.refusal(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	if doc.Quantity == 0 {
		s.tell(ctx, doc)
	}
	return doc.message(), nil
}

func (s *inventoryServer) Release(ctx context.Context, in *gen.Units) (*gen.InventoryItem, error) {
	doc, err := s.add(ctx, bson.D{{"_id", in.PetId}}, in.Quantity)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, petNotFound(in.PetId)
	}
	if err != nil {
		return nil, err
	}
	if doc.Quantity == in.Quantity {
		s.tell(ctx, doc)
	}
	return doc.message(), nil
}

// add changes a stock, and with it the status that follows from it.
func (s *inventoryServer) add(ctx context.Context, filter bson.D, units int32) (doc inventoryDoc, err error) {
	update := mongo.Pipeline{
		{{"$set", bson.D{{"quantity", bson.D{{"$add", bson.A{"$quantity", units}}}}}}},
		{{"$set", bson.D{{"status", bson.D{{"$cond", bson.A{bson.D{{"$gt", bson.A{"$quantity", 0}}}, "available", "pending"}}}}}}},
	}
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	err = s.entries.FindOneAndUpdate(ctx, filter, update, after).Decode(&doc)
	return doc, err
}

// tell passes a new status on to the pet. If that fails the pet keeps its old one.
func (s *inventoryServer) tell(ctx context.Context, doc inventoryDoc) {
	if _, err := s.pets.SetPetStatus(ctx, &gen.SetPetStatusRequest{Id: doc.PetID, Status: doc.Status}); err != nil {
		slog.Warn("the status of a pet is out of date", "pet", doc.PetID, "error", err)
	}
}

func (s *inventoryServer) refusal(ctx context.Context, in *gen.Units) error {
	doc, err := s.read(ctx, in.PetId)
	switch {
	case err != nil:
		return err
	case doc.Status != "available":
		return fail(codes.FailedPrecondition, "PET_NOT_AVAILABLE", "Pet %d is not available now. Order it when its status is available again.", in.PetId)
	default:
		return fail(codes.FailedPrecondition, "INSUFFICIENT_STOCK", "Pet %d has fewer than %d units in stock. Order less.", in.PetId, in.Quantity)
	}
}

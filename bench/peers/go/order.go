package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"petstore/gen"
)

type orderDoc struct {
	ID       int64      `bson:"_id"`
	PetID    *int64     `bson:"petId,omitempty"`
	Quantity *int32     `bson:"quantity,omitempty"`
	ShipDate *time.Time `bson:"shipDate,omitempty"`
	Complete *bool      `bson:"complete,omitempty"`
}

type orderServer struct {
	gen.UnimplementedOrderServiceServer
	orders    *mongo.Collection
	ids       *sequence
	inventory gen.InventoryServiceClient
}

func registerOrder(server *grpc.Server, db *mongo.Database) error {
	inventory, err := dial("inventory")
	if err != nil {
		return err
	}
	gen.RegisterOrderServiceServer(server, &orderServer{
		orders:    db.Collection("orders"),
		ids:       &sequence{counters: db.Collection("counters"), name: "orders"},
		inventory: gen.NewInventoryServiceClient(inventory),
	})
	return nil
}

func (s *orderServer) CreateOrder(ctx context.Context, in *gen.Order) (*gen.Order, error) {
	if in.PetId != nil && *in.PetId < 1 {
		return nil, fail(codes.InvalidArgument, "VALIDATION_FAILED", "petId: must be at least 1")
	}
	if in.Quantity != nil && *in.Quantity < 1 {
		return nil, fail(codes.InvalidArgument, "VALIDATION_FAILED", "quantity: must be at least 1")
	}
	// A caller that goes away leaves no half of an order: what has begun is finished.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	id, err := s.ids.next(ctx)
	if err != nil {
		return nil, err
	}
	order := &gen.Order{Id: &id, PetId: in.PetId, Quantity: in.Quantity, ShipDate: in.ShipDate, Complete: in.Complete}
	if order.PetId == nil {
		return order, s.insert(ctx, order)
	}
	if order.Quantity == nil {
		order.Quantity = new(int32(1))
	}
	if order.Complete == nil {
		order.Complete = new(false)
	}
	units := &gen.Units{PetId: *order.PetId, Quantity: *order.Quantity}
	if _, err := s.inventory.Reserve(ctx, units); err != nil {
		return nil, err
	}
	if err := s.insert(ctx, order); err != nil {
		// The units go back, unless this process dies first.
		if _, lost := s.inventory.Release(context.WithoutCancel(ctx), units); lost != nil {
			slog.Error("units are lost", "order", id, "pet", units.PetId, "quantity", units.Quantity, "error", lost)
		}
		return nil, err
	}
	return order, nil
}

func (s *orderServer) insert(ctx context.Context, order *gen.Order) error {
	doc := orderDoc{ID: *order.Id, PetID: order.PetId, Quantity: order.Quantity, Complete: order.Complete}
	if order.ShipDate != nil {
		doc.ShipDate = new(order.ShipDate.AsTime())
	}
	_, err := s.orders.InsertOne(ctx, doc)
	return err
}

// blockSize is how many ids are fetched at a time. What a process has not used when it ends is never given out.
const blockSize = 50

type sequence struct {
	counters *mongo.Collection
	name     string

	mu         sync.Mutex
	last, upTo int64
}

func (s *sequence) next(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == s.upTo {
		var doc struct{ Last int64 }
		update := bson.D{{"$inc", bson.D{{"last", int64(blockSize)}}}}
		after := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
		if err := s.counters.FindOneAndUpdate(ctx, bson.D{{"_id", s.name}}, update, after).Decode(&doc); err != nil {
			return 0, err
		}
		s.last, s.upTo = doc.Last-blockSize, doc.Last
	}
	s.last++
	return s.last, nil
}

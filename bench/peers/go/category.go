package main

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"petstore/gen"
)

type categoryServer struct {
	gen.UnimplementedCategoryServiceServer
	categories *mongo.Collection
}

func registerCategory(server *grpc.Server, db *mongo.Database) error {
	gen.RegisterCategoryServiceServer(server, &categoryServer{categories: db.Collection("categories")})
	return nil
}

func (s *categoryServer) GetCategory(ctx context.Context, in *gen.GetCategoryRequest) (*gen.Category, error) {
	var doc struct {
		ID          int64   `bson:"_id"`
		Name        string  `bson:"name"`
		Description *string `bson:"description"`
	}
	err := s.categories.FindOne(ctx, bson.D{{"_id", in.Id}}).Decode(&doc)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, fail(codes.NotFound, "CATEGORY_NOT_FOUND", "No category has the id %d.", in.Id)
	}
	if err != nil {
		return nil, err
	}
	return &gen.Category{Id: doc.ID, Name: doc.Name, Description: doc.Description}, nil
}

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"petstore/gen"
)

const maxPage = 100

var statuses = []string{"available", "pending", "sold"}

type petDoc struct {
	ID         int64  `bson:"_id"`
	Name       string `bson:"name"`
	CategoryID int64  `bson:"categoryId"`
	Status     string `bson:"status"`
}

func (d petDoc) message() *gen.Pet {
	return &gen.Pet{Id: d.ID, Name: d.Name, CategoryId: d.CategoryID, Status: d.Status}
}

type petServer struct {
	gen.UnimplementedPetServiceServer
	pets *mongo.Collection
}

func registerPet(server *grpc.Server, db *mongo.Database) error {
	gen.RegisterPetServiceServer(server, &petServer{pets: db.Collection("pets")})
	return nil
}

func (s *petServer) GetPet(ctx context.Context, in *gen.GetPetRequest) (*gen.Pet, error) {
	return petOf(s.pets.FindOne(ctx, bson.D{{"_id", in.Id}}), in.Id)
}

func (s *petServer) SetPetStatus(ctx context.Context, in *gen.SetPetStatusRequest) (*gen.Pet, error) {
	update := bson.D{{"$set", bson.D{{"status", in.Status}}}}
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	return petOf(s.pets.FindOneAndUpdate(ctx, bson.D{{"_id", in.Id}}, update, after), in.Id)
}

func petOf(result *mongo.SingleResult, id int64) (*gen.Pet, error) {
	var doc petDoc
	if err := result.Decode(&doc); errors.Is(err, mongo.ErrNoDocuments) {
		return nil, petNotFound(id)
	} else if err != nil {
		return nil, err
	}
	return doc.message(), nil
}

func (s *petServer) ListPets(ctx context.Context, in *gen.ListPetsRequest) (*gen.ListPetsResponse, error) {
	limit := int64(maxPage)
	if in.Limit != nil {
		limit = min(int64(*in.Limit), maxPage)
	}
	if limit < 1 {
		return nil, fail(codes.InvalidArgument, "INVALID_QUERY", "limit: must be at least 1")
	}
	filter, direction, err := listed(in)
	if err != nil {
		return nil, err
	}
	// One more than the page tells whether there is another.
	cursor, err := s.pets.Find(ctx, filter, options.Find().SetSort(bson.D{{"_id", direction}}).SetLimit(limit+1))
	if err != nil {
		return nil, err
	}
	docs := make([]petDoc, 0, limit+1)
	if err := cursor.All(ctx, &docs); err != nil {
		return nil, err
	}
	out := &gen.ListPetsResponse{}
	if int64(len(docs)) > limit {
		docs = docs[:limit]
		out.NextPageToken = base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, docs[limit-1].ID, 10))
	}
	out.Pets = make([]*gen.Pet, len(docs))
	for i, doc := range docs {
		out.Pets[i] = doc.message()
	}
	return out, nil
}

// listed says which pets a request means, and in which order.
func listed(in *gen.ListPetsRequest) (filter bson.D, direction int, err error) {
	var beyond string
	switch in.GetOrderBy() {
	case "", "-id":
		direction, beyond = -1, "$lt"
	case "id":
		direction, beyond = 1, "$gt"
	default:
		return nil, 0, fail(codes.InvalidArgument, "INVALID_QUERY", `orderBy: must be "id" or "-id"`)
	}
	filter = bson.D{}
	if in.CategoryId != nil {
		filter = append(filter, bson.E{"categoryId", *in.CategoryId})
	}
	for _, status := range in.Status {
		if !slices.Contains(statuses, status) {
			return nil, 0, fail(codes.InvalidArgument, "INVALID_QUERY", "status: must be one of %v", statuses)
		}
	}
	if len(in.Status) == 1 {
		filter = append(filter, bson.E{"status", in.Status[0]})
	} else if len(in.Status) > 1 {
		filter = append(filter, bson.E{"status", bson.D{{"$in", in.Status}}})
	}
	var ids bson.D
	if len(in.Id) > 0 {
		ids = append(ids, bson.E{"$in", in.Id})
	}
	if in.PageToken != "" {
		text, _ := base64.RawURLEncoding.DecodeString(in.PageToken)
		after, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return nil, 0, fail(codes.InvalidArgument, "INVALID_PAGE_TOKEN", "pageToken: This is not a token that the list gave out.")
		}
		ids = append(ids, bson.E{beyond, after})
	}
	if ids != nil {
		filter = append(filter, bson.E{"_id", ids})
	}
	return filter, direction, nil
}

// The gRPC service that gateways are measured in front of, and grpc-gateway as its README sets it up:
//
//	shelves service 127.0.0.1:9000
//	shelves gateway 127.0.0.1:8000 127.0.0.1:9000
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"shelves/gen"
)

func main() {
	if os.Args[1] == "service" {
		log.Fatal(serveService(os.Args[2]))
	}
	log.Fatal(serveGateway(os.Args[2], os.Args[3]))
}

func serveGateway(address, service string) error {
	mux := runtime.NewServeMux()
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if err := gen.RegisterShelvesHandlerFromEndpoint(context.Background(), mux, service, options); err != nil {
		return err
	}
	return http.ListenAndServe(address, mux)
}

func serveService(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	gen.RegisterShelvesServer(server, &shelves{})
	reflection.Register(server)
	return server.Serve(listener)
}

// shelves has one item, and lists it under many names: its own work is to cost little, and the same whoever asks.
type shelves struct {
	gen.UnimplementedShelvesServer
}

func item(name string) *gen.Item {
	return &gen.Item{
		Name:       name,
		Title:      "The Atlas of Lost Rivers, revised \"and\" corrected — 2nd",
		Kind:       gen.Kind_KIND_BOOK,
		Copies:     9007199254740993,
		Weight:     1.25,
		Cover:      []byte("not really a picture"),
		Tags:       []string{"rivers", "maps", "history"},
		Labels:     map[string]string{"colour": "blue"},
		CreateTime: &timestamppb.Timestamp{Seconds: 1767225600, Nanos: 5000000},
		Loan:       &durationpb.Duration{Seconds: 1209600},
		Edition:    wrapperspb.Int32(2),
		Author:     &gen.Person{GivenName: "Ada", FamilyName: "Okonkwo", Born: 1961},
		Chapters:   []*gen.Chapter{{Title: "Springs", Page: 1, Figures: []int32{1, 2}}},
		Place:      &gen.Item_Room{Room: "north"},
	}
}

func (*shelves) GetItem(_ context.Context, request *gen.GetItemRequest) (*gen.Item, error) {
	return item(request.Name), nil
}

// ListItems answers with about 10 kB of JSON.
func (*shelves) ListItems(_ context.Context, request *gen.ListItemsRequest) (*gen.ListItemsResponse, error) {
	response := &gen.ListItemsResponse{NextPageToken: "20"}
	for i := range 20 {
		response.Items = append(response.Items, item(fmt.Sprintf("%s/items/%d", request.Parent, i)))
	}
	return response, nil
}

func (*shelves) CreateItem(_ context.Context, request *gen.CreateItemRequest) (*gen.Item, error) {
	created := proto.Clone(request.Item).(*gen.Item)
	created.Name = request.Parent + "/items/1"
	return created, nil
}

// UpdateItem shows in the title what the mask was, in whatever order.
func (*shelves) UpdateItem(_ context.Context, request *gen.UpdateItemRequest) (*gen.Item, error) {
	updated := item(request.Item.Name)
	updated.Title = strings.Join(slices.Sorted(slices.Values(request.UpdateMask.GetPaths())), " ")
	return updated, nil
}

// A gRPC service that knows nothing of HTTP/JSON. Its contract is Google's example of one, with google.api.http rules.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"sync"

	"google.golang.org/genproto/googleapis/example/library/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

type shelves struct {
	library.UnimplementedLibraryServiceServer
	mutex  sync.Mutex
	byName map[string]*library.Shelf
}

func (s *shelves) GetShelf(_ context.Context, request *library.GetShelfRequest) (*library.Shelf, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if shelf, ok := s.byName[request.Name]; ok {
		return shelf, nil
	}
	return nil, status.Errorf(codes.NotFound, "There is no %s.", request.Name)
}

func (s *shelves) CreateShelf(_ context.Context, request *library.CreateShelfRequest) (*library.Shelf, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	shelf := &library.Shelf{Name: "shelves/novels", Theme: request.GetShelf().GetTheme()}
	s.byName[shelf.Name] = shelf
	return shelf, nil
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "50051"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	library.RegisterLibraryServiceServer(server, &shelves{byName: map[string]*library.Shelf{}})
	reflection.Register(server) // this line is all that connect-transcoder needs
	log.Fatal(server.Serve(listener))
}

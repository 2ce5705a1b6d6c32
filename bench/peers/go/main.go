// The petstore as a Go team would write it: grpc-gateway before four grpc-go services on MongoDB.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: petstore gateway|pet|category|order|inventory")
	}
	if args[0] == "gateway" {
		return serveGateway(ctx)
	}
	register, ok := services[args[0]]
	if !ok {
		return errors.New("there is no service " + args[0])
	}
	return serveService(ctx, register, addressOf(args[0]))
}

var services = map[string]func(*grpc.Server, *mongo.Database) error{
	"pet":       registerPet,
	"category":  registerCategory,
	"order":     registerOrder,
	"inventory": registerInventory,
}

// addressOf is where a process listens, or is to be found.
func addressOf(name string) string { return os.Getenv(strings.ToUpper(name) + "_ADDR") }

func serveService(ctx context.Context, register func(*grpc.Server, *mongo.Database) error, address string) error {
	client, err := mongo.Connect(options.Client().
		ApplyURI(os.Getenv("MONGODB_URI")).
		SetReadConcern(readconcern.Majority()).
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: new(true)}))
	if err != nil {
		return err
	}
	defer client.Disconnect(context.WithoutCancel(ctx))
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second}))
	if err := register(server, client.Database(os.Getenv("MONGODB_DATABASE"))); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, server.GracefulStop)
	return server.Serve(listener)
}

// dial returns the one connection that all calls to a service share. It is made when first used, and again when it broke.
// Calls wait for it, as long as their deadline lets them.
func dial(service string) (*grpc.ClientConn, error) {
	return grpc.NewClient(addressOf(service),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: 5 * time.Second}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"petstore/gen"
)

func serveGateway(ctx context.Context) error {
	runtime.DefaultContextTimeout = 10 * time.Second
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &marshaler{}),
		runtime.WithForwardResponseOption(addHeaders),
		// Metadata of gRPC is no business of HTTP clients.
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithErrorHandler(writeError))
	for service, register := range map[string]func(context.Context, *runtime.ServeMux, *grpc.ClientConn) error{
		"pet":       gen.RegisterPetServiceHandler,
		"category":  gen.RegisterCategoryServiceHandler,
		"order":     gen.RegisterOrderServiceHandler,
		"inventory": gen.RegisterInventoryServiceHandler,
	} {
		conn, err := dial(service)
		if err != nil {
			return err
		}
		if err := register(ctx, mux, conn); err != nil {
			return err
		}
	}
	server := &http.Server{Addr: addressOf("gateway"), Handler: logged(mux), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Shutdown(context.Background()) })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// response remembers what the log line and the headers want to know.
type response struct {
	http.ResponseWriter
	request *http.Request
	status  int
}

func (r *response) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		answer := &response{ResponseWriter: w, request: r, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		slog.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method),
			slog.String("path", r.URL.Path),
			slog.Int("status", answer.status),
			slog.Int64("ms", time.Since(start).Milliseconds()))
	})
}

// addHeaders adds what the message alone knows: where the next page is, and where a new order is.
func addHeaders(_ context.Context, w http.ResponseWriter, message proto.Message) error {
	switch message := message.(type) {
	case interface{ GetNextPageToken() string }:
		if token := message.GetNextPageToken(); token != "" {
			next := *w.(*response).request.URL
			query := next.Query()
			query.Set("pageToken", token)
			next.RawQuery = query.Encode()
			w.Header().Set("Link", "<"+next.String()+`>; rel="next"`)
		}
	case *gen.Order:
		w.Header().Set("Location", "/store/orders/"+strconv.FormatInt(message.GetId(), 10))
		w.WriteHeader(http.StatusCreated)
	}
	return nil
}

// marshaler writes int64 as JSON numbers, as the interface has them (protojson writes strings), and reads as protojson does.
type marshaler struct{ runtime.JSONPb }

type petJSON struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status"`
}

func toPetJSON(pet *gen.Pet) petJSON { return petJSON{pet.Id, pet.Name, pet.CategoryId, pet.Status} }

type orderJSON struct {
	ID       *int64     `json:"id,omitempty"`
	PetID    *int64     `json:"petId,omitempty"`
	Quantity *int32     `json:"quantity,omitempty"`
	ShipDate *time.Time `json:"shipDate,omitempty"`
	Complete *bool      `json:"complete,omitempty"`
}

func (m *marshaler) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case *gen.Pet:
		return json.Marshal(toPetJSON(v))
	case []*gen.Pet:
		pets := make([]petJSON, len(v))
		for i, pet := range v {
			pets[i] = toPetJSON(pet)
		}
		return json.Marshal(pets)
	case *gen.Order:
		order := orderJSON{ID: v.Id, PetID: v.PetId, Quantity: v.Quantity, Complete: v.Complete}
		if v.ShipDate != nil {
			order.ShipDate = new(v.ShipDate.AsTime())
		}
		return json.Marshal(order)
	case *gen.Category:
		return json.Marshal(struct {
			ID          int64   `json:"id"`
			Name        string  `json:"name"`
			Description *string `json:"description,omitempty"`
		}{v.Id, v.Name, v.Description})
	case *gen.InventoryItem:
		return json.Marshal(struct {
			PetID    int64  `json:"petId"`
			Quantity int32  `json:"quantity"`
			Status   string `json:"status"`
		}{v.PetId, v.Quantity, v.Status})
	}
	return protojson.Marshal(v.(proto.Message))
}

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fail makes the error of a service: a gRPC status, and as its reason the code of the HTTP interface.
func fail(code codes.Code, reason, format string, args ...any) error {
	failure := status.Newf(code, format, args...)
	if detailed, err := failure.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "petstore"}); err == nil {
		failure = detailed
	}
	return failure.Err()
}

func petNotFound(id int64) error {
	return fail(codes.NotFound, "PET_NOT_FOUND", "No pet has the id %d.", id)
}

// httpStatus is grpc-gateway's table but for conflicts, such as a pet that is not available: 409.
func httpStatus(code codes.Code) int {
	if code == codes.FailedPrecondition {
		return http.StatusConflict
	}
	return runtime.HTTPStatusFromCode(code)
}

func writeError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	failure := status.Convert(err)
	code := failure.Code().String()
	for _, detail := range failure.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			code = info.Reason
		}
	}
	statusCode, message := httpStatus(failure.Code()), failure.Message()
	if statusCode == http.StatusInternalServerError {
		slog.Error("request failed", "error", err)
		message = "Something went wrong here. It is logged."
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusCode)
	json.NewEncoder(w).Encode(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Status  int    `json:"status"`
	}{code, message, statusCode})
}

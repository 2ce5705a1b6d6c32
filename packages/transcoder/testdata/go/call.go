package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Serves a call of any method, by its path "/package.Service/Method".
func (b *backend) handle(_ any, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	name := strings.TrimPrefix(path, "/")
	method, ok := b.methodOf(protoreflect.FullName(strings.Replace(name, "/", ".", 1)))
	if !ok {
		return status.Errorf(codes.Unimplemented, "no method %s", name)
	}
	answer := b.begin(name, stream)
	if err := b.receive(method, stream); err != nil {
		return err
	}
	if len(answer.Headers) > 0 {
		if err := stream.SetHeader(metadataOf(answer.Headers)); err != nil {
			return err
		}
	}
	stream.SetTrailer(metadataOf(answer.Trailers))
	messages := answer.Messages
	isOne := !method.IsStreamingServer()
	if isOne && answer.Error == nil && !answer.Hangs && len(messages) == 0 {
		if err := stream.SendMsg(newMessage(method.Output())); err != nil {
			return err
		}
	}
	for _, text := range messages {
		message := newMessage(method.Output())
		if err := protojson.Unmarshal(text, message); err != nil {
			return status.Errorf(codes.Internal, "the case's answer: %v", err)
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
	if answer.Hangs {
		<-stream.Context().Done()
		return status.FromContextError(stream.Context().Err()).Err()
	}
	return b.failureOf(answer)
}

// Keeps a call from its start: one that is refused in the midst of its stream was one.
func (b *backend) begin(name string, stream grpc.ServerStream) answer {
	headers := map[string]string{}
	given, _ := metadata.FromIncomingContext(stream.Context())
	for name, values := range given {
		if strings.HasSuffix(name, "-bin") {
			for i, value := range values {
				values[i] = base64.StdEncoding.EncodeToString([]byte(value))
			}
		}
		headers[name] = strings.Join(values, ", ")
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.calls = append(b.calls, &call{Method: name, Messages: []json.RawMessage{}, Headers: headers})
	return b.answer
}

func (b *backend) receive(method protoreflect.MethodDescriptor, stream grpc.ServerStream) error {
	b.mutex.Lock()
	kept := b.calls[len(b.calls)-1]
	b.mutex.Unlock()
	for {
		message := newMessage(method.Input())
		err := stream.RecvMsg(message)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := protojson.Marshal(message)
		if err != nil {
			return status.Errorf(codes.Internal, "what came: %v", err)
		}
		b.mutex.Lock()
		kept.Messages = append(kept.Messages, text)
		b.mutex.Unlock()
		if !method.IsStreamingClient() {
			return nil
		}
	}
}

func metadataOf(fields map[string]string) metadata.MD {
	md := metadata.MD{}
	for name, value := range fields {
		if strings.HasSuffix(name, "-bin") {
			bytes, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
			value = string(bytes)
		}
		md.Append(name, value)
	}
	return md
}

func (b *backend) failureOf(answer answer) error {
	if answer.Error == nil {
		return nil
	}
	said := &spb.Status{Code: answer.Error.Code, Message: answer.Error.Message}
	for _, text := range answer.Error.Details {
		detail := &anypb.Any{}
		if err := protojson.Unmarshal(text, detail); err != nil {
			// A type that nobody here knows: its bytes are given in base64.
			raw := struct {
				Type  string `json:"@type"`
				Value []byte `json:"value"`
			}{}
			if err := json.Unmarshal(text, &raw); err != nil {
				return status.Errorf(codes.Internal, "the case's detail: %v", err)
			}
			detail = &anypb.Any{TypeUrl: raw.Type, Value: raw.Value}
		}
		said.Details = append(said.Details, detail)
	}
	return status.ErrorProto(said)
}

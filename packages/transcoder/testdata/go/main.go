// A gRPC server of any contract, which cases try through the transcoder. It keeps what it gets and says what it was told to.
//
// It takes a descriptor set as its argument. On its control port, POST /prepare says what it answers from now on, and
// GET /calls what it got since then. Both are JSON, as run/case.ts and run/backend.ts have it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // types of details that no contract brings along
)

func main() {
	contract, err := readContract(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := register(contract); err != nil {
		log.Fatal(err)
	}
	b := &backend{contract: contract}
	server := grpc.NewServer(grpc.UnknownServiceHandler(b.handle))
	calls, control := listen(), listen()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /prepare", b.prepare)
	mux.HandleFunc("GET /calls", b.tell)
	go func() { log.Fatal(http.Serve(control, mux)) }()
	// Ends with whoever started it.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Printf("gRPC at %s, control at %s.\n", calls.Addr(), control.Addr())
	log.Fatal(server.Serve(calls))
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func readContract(path string) (*protoregistry.Files, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(bytes, set); err != nil {
		return nil, err
	}
	return protodesc.NewFiles(set)
}

// What a test process and the calls share.
type backend struct {
	contract *protoregistry.Files
	mutex    sync.Mutex
	answer   answer
	calls    []*call
}

type call struct {
	Method   string            `json:"method"`
	Messages []json.RawMessage `json:"messages"`
	Headers  map[string]string `json:"headers"`
}

type answer struct {
	Messages []json.RawMessage `json:"messages"`
	Error    *struct {
		Code    int32             `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	} `json:"error"`
	Headers  map[string]string `json:"headers"`
	Trailers map[string]string `json:"trailers"`
	Hangs    bool              `json:"hangs"`
}

func (b *backend) prepare(_ http.ResponseWriter, request *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.answer, b.calls = answer{}, []*call{}
	if err := json.NewDecoder(request.Body).Decode(&b.answer); err != nil {
		log.Fatal(err)
	}
}

func (b *backend) tell(response http.ResponseWriter, _ *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	_ = json.NewEncoder(response).Encode(b.calls)
}

func (b *backend) methodOf(name protoreflect.FullName) (protoreflect.MethodDescriptor, bool) {
	found, err := b.contract.FindDescriptorByName(name)
	if err != nil {
		return nil, false
	}
	method, ok := found.(protoreflect.MethodDescriptor)
	return method, ok
}

func newMessage(desc protoreflect.MessageDescriptor) *dynamicpb.Message {
	return dynamicpb.NewMessage(desc)
}

package main

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What declares types: a file, or a message.
type declaring interface {
	Messages() protoreflect.MessageDescriptors
	Extensions() protoreflect.ExtensionDescriptors
}

// Lets an Any hold the messages of the contract, and messages have its extensions. What is built in stays.
func register(contract *protoregistry.Files) (err error) {
	contract.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		err = registerIn(file)
		return err == nil
	})
	return err
}

func registerIn(place declaring) error {
	known := protoregistry.GlobalTypes
	for i := range place.Extensions().Len() {
		extension := place.Extensions().Get(i)
		if _, err := known.FindExtensionByName(extension.FullName()); err == nil {
			continue
		}
		if err := known.RegisterExtension(dynamicpb.NewExtensionType(extension)); err != nil {
			return err
		}
	}
	for i := range place.Messages().Len() {
		message := place.Messages().Get(i)
		if _, err := known.FindMessageByName(message.FullName()); err != nil {
			if err := known.RegisterMessage(dynamicpb.NewMessageType(message)); err != nil {
				return err
			}
		}
		if err := registerIn(message); err != nil {
			return err
		}
	}
	return nil
}

package onnxpb

import "google.golang.org/protobuf/reflect/protoreflect"

// A Kind describes the fields of a kind of messages.
type Kind = protoreflect.MessageDescriptor

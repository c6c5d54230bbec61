package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Note is a key with a value that a file has next to its graph.
type Note struct{ Key, Value string }

// Notes returns the metadata of the model and of its graph, in the file's order.
func (m *Model) Notes() []Note {
	var out []Note
	for _, p := range m.Proto.MetadataProps {
		out = append(out, Note{p.Key, p.Value})
	}
	for _, b := range unread(m.Proto.Graph, graphMetadata) {
		p := new(onnxpb.StringStringEntryProto)
		if proto.Unmarshal(b, p) == nil {
			out = append(out, Note{p.Key, p.Value})
		}
	}
	return out
}

// Doc returns the description of an input or an output in the file, or "".
func Doc(v *onnxpb.ValueInfoProto) string { return firstText(v, valueDoc) }

// Denotation returns the meaning of a value in the file, such as IMAGE, and of each of its dimensions, such
// as DATA_CHANNEL; "" if it isn't stated.
func Denotation(v *onnxpb.ValueInfoProto) (value string, dimensions []string) {
	for _, d := range v.GetType().GetTensorType().GetShape().GetDim() {
		dimensions = append(dimensions, firstText(d, dimensionDenotation))
	}
	return firstText(v.GetType(), typeDenotation), dimensions
}

// Fields that onnx.proto leaves out. Known fields are written before unknown ones, so that adding one to
// onnx.proto would change the bytes of models, and with them the keys of results.
const (
	trainingInfo        = 20 // of ModelProto
	graphMetadata       = 16 // of GraphProto
	valueDoc            = 3  // of ValueInfoProto
	typeDenotation      = 6  // of TypeProto
	dimensionDenotation = 3  // of TensorShapeProto.Dimension
)

// unread returns the values of a length-delimited field that onnx.proto leaves out.
func unread(m proto.Message, field protowire.Number) [][]byte {
	var out [][]byte
	for b := m.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return out
		}
		if _, _, tag := protowire.ConsumeTag(b); number == field && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[tag:])
			out = append(out, v)
		}
		b = b[n:]
	}
	return out
}

func firstText(m proto.Message, field protowire.Number) string {
	for _, b := range unread(m, field) {
		return string(b)
	}
	return ""
}

// leaveOut removes a field that onnx.proto leaves out.
func leaveOut(m proto.Message, field protowire.Number) {
	var kept []byte
	for b := m.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return
		}
		if number != field {
			kept = append(kept, b[:n]...)
		}
		b = b[n:]
	}
	m.ProtoReflect().SetUnknown(kept)
}

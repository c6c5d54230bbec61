package onnx

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestEveryPlaceOfAFile puts a tensor that stands in another file wherever the format has one, as protobuf's
// reflection tells, through graphs in nodes and functions. What is read is, to the byte, what is read where
// the tensor is inside, and the file is among those that keys are made of.
func TestEveryPlaceOfAFile(t *testing.T) {
	places := placesOf((&onnxpb.ModelProto{}).ProtoReflect().Descriptor(), nil)
	if len(places) < 40 {
		t.Fatalf("%d places: the format has more", len(places))
	}
	for _, place := range places {
		var inside, outside onnxpb.ModelProto
		proto.Merge(&inside, tiny())
		proto.Merge(&outside, tiny())
		put(inside.ProtoReflect(), place)
		there := put(outside.ProtoReflect(), place)
		stored := there.RawData
		there.RawData, there.DataLocation = nil, onnxpb.TensorProto_EXTERNAL
		there.ExternalData = []*onnxpb.StringStringEntryProto{{Key: "location", Value: "sub/w.bin"}}

		dir := t.TempDir()
		in, out := filepath.Join(dir, "in.onnx"), filepath.Join(dir, "out.onnx")
		write := func(path string, b []byte) {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(in, encode(t, &inside))
		write(out, encode(t, &outside))
		if _, err := ReadFile(out); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: without its file: %v", name(place), err)
		}
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(dir, "sub", "w.bin"), stored)

		files, err := ExternalFiles(out)
		if err != nil || !slices.Equal(files, []string{filepath.Join(dir, "sub", "w.bin")}) {
			t.Errorf("%s: files %q, %v", name(place), files, err)
		}
		want, err := ReadFile(in)
		if err != nil {
			t.Fatalf("%s: inside: %v", name(place), err)
		}
		got, err := ReadFile(out)
		if err != nil {
			t.Errorf("%s: %v", name(place), err)
			continue
		}
		a, err := want.Encode()
		b, err2 := got.Encode()
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: not what is read where the tensor is inside: %v, %v", name(place), err, err2)
		}
		if _, err := Parse(encode(t, &outside)); err == nil {
			t.Errorf("%s: taken for a model with all its weights", name(place))
		}
	}
}

// placesOf returns the paths of fields that lead from a kind of message to a tensor. A kind may stand in
// itself once: graphs in nodes of graphs.
func placesOf(kind protoreflect.MessageDescriptor, before []protoreflect.FieldDescriptor,
) (out [][]protoreflect.FieldDescriptor) {
	if kind.FullName() == tensorName {
		return [][]protoreflect.FieldDescriptor{before}
	}
	again := 0
	for _, f := range before {
		if f.Message() == kind {
			again++
		}
	}
	if again > 2 {
		return nil
	}
	for i := range kind.Fields().Len() {
		if f := kind.Fields().Get(i); f.Message() != nil {
			out = append(out, placesOf(f.Message(), append(slices.Clone(before), f))...)
		}
	}
	return out
}

func name(place []protoreflect.FieldDescriptor) string {
	var names []string
	for _, f := range place {
		names = append(names, string(f.Name()))
	}
	return strings.Join(names, ".")
}

// put adds what stands on a path of fields, and the tensor at its end.
func put(m protoreflect.Message, place []protoreflect.FieldDescriptor) *onnxpb.TensorProto {
	switch v := m.Interface().(type) {
	case *onnxpb.TensorProto:
		v.Name, v.Dims, v.DataType = "put", []int64{2}, int32(onnxpb.TensorProto_INT64)
		v.RawData = slices.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 2)
		v.RawData[0] = 0
		return v
	case *onnxpb.SparseTensorProto:
		v.Dims, v.Values, v.Indices = []int64{4}, &onnxpb.TensorProto{}, &onnxpb.TensorProto{}
		put(v.Values.ProtoReflect(), nil)
		put(v.Indices.ProtoReflect(), nil)
	case *onnxpb.NodeProto:
		v.OpType, v.Output = "Constant", []string{"made"}
	case *onnxpb.AttributeProto:
		v.Name = "value"
	}
	f := place[0]
	if f.IsList() {
		return put(m.Mutable(f).List().AppendMutable().Message(), place[1:])
	}
	return put(m.Mutable(f).Message(), place[1:])
}

// TestTrainingIsLeftOut holds that the half of a file that trains a model, which may name files and which
// nothing reads, isn't in what is read.
func TestTrainingIsLeftOut(t *testing.T) {
	var half onnxpb.GraphProto
	put(half.ProtoReflect(), placesOf(half.ProtoReflect().Descriptor(), nil)[0]).DataLocation =
		onnxpb.TensorProto_EXTERNAL
	info := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), encode(t, &half))
	b := protowire.AppendBytes(protowire.AppendTag(encode(t, tiny()), trainingInfo, protowire.BytesType),
		info)
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Encode(); err != nil || !bytes.Equal(got, encode(t, tiny())) {
		t.Errorf("%d bytes, want those without training: %v", len(got), err)
	}
}

// TestStoredSize holds sizes of narrow elements against those that ONNX's own code gives them.
func TestStoredSize(t *testing.T) {
	for _, tt := range []struct {
		kind    int32
		dims    []int64
		want    int64
		refused bool
	}{
		{17, []int64{3}, 3, false}, {20, []int64{5}, 5, false}, {21, []int64{3}, 2, false},
		{22, []int64{2, 2}, 2, false}, {25, []int64{5}, 2, false}, {10, []int64{5}, 10, false},
		{8, []int64{5}, -1, false}, {22, []int64{1 << 40, 1 << 40}, 0, true}, {22, []int64{-1}, 0, true},
	} {
		got, err := storedSize(&onnxpb.TensorProto{DataType: tt.kind, Dims: tt.dims})
		if (err != nil) != tt.refused || err == nil && got != tt.want {
			t.Errorf("type %d of %v: %d, %v, want %d", tt.kind, tt.dims, got, err, tt.want)
		}
	}
}

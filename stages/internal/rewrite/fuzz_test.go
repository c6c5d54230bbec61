package rewrite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// FuzzLoad holds that no bytes make loading panic or ask for much memory, and that what was loaded can be
// written.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("../program/testdata/nets/*.onnx")
	if err != nil || len(files) == 0 {
		f.Fatalf("no nets to start from: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, m := range []*onnx.Model{
		model(9, chain("b=a", "a=x")),
		model(12, []*onnxpb.NodeProto{node("Softmax", "x"),
			onnx.NewNode("", "Clip", []string{"y"}, []string{"z"})}),
		model(18, []*onnxpb.NodeProto{node("ReduceMean", "x w")}, ints("w", 0)),
	} {
		b, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := onnx.Parse(b)
		if err != nil {
			return
		}
		if TopologicalOrder(m) != nil {
			return
		}
		if _, err := SinglePrecision(m); err != nil {
			return
		}
		m.FlushSubnormals()
		m.Prune()
		types := map[string]onnx.Type{}
		for _, v := range m.Inputs() {
			types[v.Name] = onnx.Type{Elem: v.Elem, Shape: v.Shape}
		}
		if _, err := ToOpset(m, types); err != nil {
			return
		}
		if _, err := m.Encode(); err != nil {
			t.Errorf("what was loaded can't be written: %v", err)
		}
	})
}

package rewrite

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// batchModel returns a model for a batch whose constants depend on it as function writes them.
func batchModel(batch int, write func(f *onnx.Fragment, x string) string) *onnx.Model {
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, Graph: &onnxpb.GraphProto{Name: "g"},
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: Opset}}}}
	f := m.Fragment()
	f.OpTo("y", "Identity", []string{write(f, "x")})
	m.After(f)
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{batch, 4}, Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{batch, 4}, Known: true})
	return m
}

func operatorsOf(m *onnx.Model) (ops []string) {
	for _, n := range m.Proto.Graph.Node {
		ops = append(ops, n.OpType)
	}
	return ops
}

// A writer writes the nodes between x and y for a batch.
type writer func(batch int, f *onnx.Fragment, x string) string

func freed(write writer) (*onnx.Model, error) {
	return FreeBatch(func(batch int) (*onnx.Model, error) {
		return batchModel(batch, func(f *onnx.Fragment, x string) string { return write(batch, f, x) }), nil
	}, "x")
}

// TestFreeBatch checks which constants are computed from the batch, and by which nodes; package attribute
// holds the numbers of freed files against those of fixed ones.
func TestFreeBatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		write writer
		want  string // operators
	}{
		{"a shape with one open dimension", func(batch int, f *onnx.Fragment, x string) string {
			return f.Op("Reshape", []string{x, f.Ints("shape", []int64{int64(2 * batch), 2}, 2)})
		}, "Reshape Identity"},
		{"a shape that isn't Reshape's", func(batch int, f *onnx.Fragment, x string) string {
			return f.Op("Expand", []string{x, f.Ints("shape", []int64{int64(batch), 4}, 2)})
		}, "Shape Mul Add Expand Identity"},
		{"rows that repeat", func(batch int, f *onnx.Fragment, x string) string {
			v := slices.Repeat([]float32{1, 2, 3, 4}, batch)
			return f.Op("Add", []string{x, f.Floats("rows", v, int64(batch), 4)})
		}, "Shape Mul Add Tile Add Identity"},
		{"the numbers of images", func(batch int, f *onnx.Fragment, x string) string {
			v := make([]int64, batch)
			for i := range v {
				v[i] = int64(i)
			}
			return f.Op("Gather", []string{x, f.Ints("rows", v, int64(batch))})
		}, "Shape Mul Reshape Range Reshape Gather Identity"},
		{"nothing", func(_ int, f *onnx.Fragment, x string) string { return f.Op("Relu", []string{x}) },
			"Relu Identity"},
	} {
		m, err := freed(c.write)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(operatorsOf(m), " "); got != c.want {
			t.Errorf("%s: the nodes are %s, want %s", c.name, got, c.want)
		}
		for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
			if v.Shape[0] != onnx.Free || v.Shape[1] != 4 {
				t.Errorf("%s: %s has shape %v", c.name, v.Name, v.Shape)
			}
		}
	}
}

// TestFreeBatchRefuses checks that what depends on the batch in another way is refused.
func TestFreeBatchRefuses(t *testing.T) {
	for _, c := range []struct {
		want  string
		write writer
	}{
		{"in a way that isn't known", func(batch int, f *onnx.Fragment, x string) string {
			square := f.Ints("to", []int64{int64(batch * batch)}, 1)
			return f.Op("Slice", []string{x, f.Ints("from", []int64{0}, 1), square})
		}},
		{"number of its nodes", func(batch int, f *onnx.Fragment, x string) string {
			for range batch {
				x = f.Op("Relu", []string{x})
			}
			return x
		}},
		{"node Elu", func(batch int, f *onnx.Fragment, x string) string {
			return f.Op("Elu", []string{x}, onnx.Attr{Name: "alpha", Value: float32(batch)})
		}},
		{"in a way that isn't known", func(batch int, f *onnx.Fragment, x string) string {
			v := make([]float32, 4*batch)
			v[batch] = 1 // rows that don't repeat
			return f.Op("Add", []string{x, f.Floats("rows", v, int64(batch), 4)})
		}},
	} {
		if _, err := freed(c.write); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

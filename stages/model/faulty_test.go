package model_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

var update = flag.Bool("update", false, "write the files of faulty nets anew")

const (
	float = onnxpb.TensorProto_FLOAT
	long  = onnxpb.TensorProto_INT64
	truth = onnxpb.TensorProto_BOOL
)

// A graph is a graph under construction.
type graph struct{ *onnxpb.GraphProto }

// op adds a node and returns its output.
func (g graph) op(op string, in []string, attrs ...onnx.Attr) string {
	out := fmt.Sprintf("%s_%d", op, len(g.Node))
	g.Node = append(g.Node, onnx.NewNode("", op, in, []string{out}, attrs...))
	return out
}

// with adds a subgraph to the last node.
func (g graph) with(name string, body *onnxpb.GraphProto) {
	n := g.Node[len(g.Node)-1]
	n.Attribute = append(n.Attribute,
		&onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_GRAPH, G: body})
}

func (g graph) number(v float32) string {
	t := onnx.FloatTensor(fmt.Sprintf("weight_%d", len(g.Initializer)), []float32{v}, 1)
	g.Initializer = append(g.Initializer, t)
	return t.Name
}

func (g graph) ints(v ...int64) string {
	t := onnx.IntTensor(fmt.Sprintf("weight_%d", len(g.Initializer)), v, len(v))
	g.Initializer = append(g.Initializer, t)
	return t.Name
}

// brightest adds the maximum of the images.
func (g graph) brightest() string {
	return g.op("ReduceMax", []string{"image"}, onnx.Attr{Name: "keepdims", Value: 0})
}

// quotient adds −2⁶³ / (2v − 1) of integers, which faults if v is 0, because the result overflows int64.
// (Newer releases of ONNX Runtime reject divisions by zero.)
func (g graph) quotient(v string) string {
	whole := func(v string) string {
		return g.op("Cast", []string{v}, onnx.Attr{Name: "to", Value: int(long)})
	}
	least, one, k := whole(g.number(-1<<63)), whole(g.number(1)), whole(v)
	odd := g.op("Sub", []string{g.op("Add", []string{k, k}), one})
	return g.op("Cast", []string{g.op("Div", []string{least, odd})}, onnx.Attr{Name: "to", Value: int(float)})
}

func value(name string, elem onnxpb.TensorProto_DataType, shape ...int) *onnxpb.ValueInfoProto {
	m := onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{}}}
	m.SetOutputs(onnx.Value{Name: name, Elem: elem, Shape: shape, Known: true})
	return m.Proto.Graph.Output[0]
}

// faulty has nets that crash the process which runs them, or never end: their classes are channel means plus
// zero times a number. The command's scripts use them as files.
var faulty = map[string]func(g graph) (number string){
	"good": func(g graph) string { return g.number(0) },
	// An integer division that faults in every forward pass.
	"divide": func(g graph) string { return g.quotient(g.op("Mul", []string{g.brightest(), g.number(0)})) },
	// Faults on a dark image, which occurs only near the baselines of path methods.
	"dark": func(g graph) string {
		most := g.op("ReduceMax", []string{"image"}, onnx.Attr{Name: "axes", Value: []int64{2, 3}},
			onnx.Attr{Name: "keepdims", Value: 0})
		most = g.op("ReduceMax", []string{most}, onnx.Attr{Name: "axes", Value: []int64{1}})
		return g.quotient(g.op("Mul", []string{most, g.number(16)}))
	},
	// A constant integer division that faults, in the condition of an If: ONNX Runtime evaluates it when it
	// loads the net.
	"branch": func(g graph) string {
		yes := g.op("Greater", []string{g.quotient(g.number(0)), g.number(0)})
		out := g.op("If", []string{yes})
		for i, name := range []string{"then_branch", "else_branch"} {
			in, out := g.number(float32(i)), "chosen_"+name
			g.with(name, &onnxpb.GraphProto{
				Name:   name,
				Node:   []*onnxpb.NodeProto{onnx.NewNode("", "Identity", []string{in}, []string{out})},
				Output: []*onnxpb.ValueInfoProto{value(out, float)},
			})
		}
		return out
	},
	// An infinite Loop.
	"loop": func(g graph) string {
		yes := g.op("Not", []string{g.op("IsNaN", []string{g.brightest()})})
		out := g.op("Loop", []string{"", yes, g.brightest()})
		g.with("body", &onnxpb.GraphProto{
			Name: "body",
			Input: []*onnxpb.ValueInfoProto{value("iteration", long), value("goes_on", truth),
				value("before", float)},
			Output: []*onnxpb.ValueInfoProto{value("still", truth), value("after", float)},
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("", "Identity", []string{"goes_on"}, []string{"still"}),
				onnx.NewNode("", "Neg", []string{"before"}, []string{"after"}),
			},
		})
		return out
	},
	// Needs more and more memory: 2 GB, then 68 GB.
	"memory": func(g graph) string {
		v := g.brightest()
		for _, n := range []int64{1 << 24, 1 << 27, 1 << 29, 1 << 34} {
			v = g.op("ReduceMax", []string{g.op("Expand", []string{v, g.ints(n)})},
				onnx.Attr{Name: "keepdims", Value: 0})
		}
		return v
	},
}

// TestFaultyFiles checks that the scripts' files contain these nets.
func TestFaultyFiles(t *testing.T) {
	for name, add := range faulty {
		g := graph{&onnxpb.GraphProto{Name: name}}
		mean := g.op("ReduceMean", []string{"image"}, onnx.Attr{Name: "axes", Value: []int64{2, 3}},
			onnx.Attr{Name: "keepdims", Value: 0})
		rectified := g.op("Relu", []string{mean})
		out := g.op("Add", []string{rectified, g.op("Mul", []string{add(g), g.number(0)})})
		g.Input = []*onnxpb.ValueInfoProto{value("image", float, onnx.Free, 3, 32, 32)}
		g.Output = []*onnxpb.ValueInfoProto{value(out, float, onnx.Free, 3)}
		m := &onnxpb.ModelProto{IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
			Graph: g.GraphProto}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", "cmd", "runexp", "testdata", "nets", name+".onnx")
		if *update {
			err := os.MkdirAll(filepath.Dir(path), 0o777)
			if err == nil {
				err = os.WriteFile(path, b, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		switch file, err := os.ReadFile(path); {
		case err != nil:
			t.Error(err)
		case !bytes.Equal(file, b):
			t.Errorf("%s isn't what this test writes: run it with -update", path)
		}
	}
}

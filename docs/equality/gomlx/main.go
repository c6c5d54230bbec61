// Command gomlx asks onnx-gomlx for the gradient of an output of an ONNX file, on GoMLX's backend in Go:
//
//	gomlx NET.onnx IMAGE 1,3,64,64 CLASS GRADIENT
//
// IMAGE and GRADIENT are files of float32, little-endian. It prints the seconds of the forward pass and of
// the gradient, or why the net is refused.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/onnx-gomlx/onnx"
)

func main() {
	defer func() {
		if e := recover(); e != nil { // GoMLX reports what it lacks by panics
			fmt.Println("refused:", strings.SplitN(fmt.Sprint(e), "\n", 2)[0])
		}
	}()
	shape, class := strings.Split(os.Args[3], ","), must(strconv.Atoi(os.Args[4]))
	must(0, run(os.Args[1], os.Args[2], shape, class, os.Args[5]))
}

func run(net, image string, shape []string, class int, gradient string) error {
	m := must(onnx.ReadFile(net))
	var dims []int
	for _, d := range shape {
		dims = append(dims, must(strconv.Atoi(d)))
	}
	b := must(os.ReadFile(image))
	x := make([]float32, len(b)/4)
	must(binary.Decode(b, binary.LittleEndian, x))
	weights := context.New()
	must(0, m.VariablesToContext(weights))
	names, _ := m.Inputs()
	backend := must(backends.New())

	timed := func(of func(y, x *graph.Node) *graph.Node) (*tensors.Tensor, float64) {
		explained := func(ctx *context.Context, in *graph.Node) *graph.Node {
			y := m.CallGraph(ctx, in.Graph(), map[string]*graph.Node{names[0]: in})[0]
			// A product, since the backend lacks Pad, of which the derivative of a slice is made.
			one := make([]float32, y.Shape().Size())
			one[class] = 1
			picked := graph.Mul(graph.Reshape(y, len(one)), graph.Const(y.Graph(), one))
			return of(graph.ReduceAllSum(picked), in)
		}
		e := must(context.NewExec(backend, weights.Reuse(), explained))
		in := tensors.FromFlatDataAndDimensions(x, dims...)
		out := must(e.Exec(in))[0] // compiles
		start := time.Now()
		must(e.Exec(in))
		return out, time.Since(start).Seconds()
	}
	_, forward := timed(func(y, _ *graph.Node) *graph.Node { return y })
	g, both := timed(func(y, x *graph.Node) *graph.Node { return graph.Gradient(y, x)[0] })
	var w bytes.Buffer
	must(0, binary.Write(&w, binary.LittleEndian, tensors.MustCopyFlatData[float32](g)))
	fmt.Println(forward, both)
	return os.WriteFile(gradient, w.Bytes(), 0o644)
}

// must returns a value, or panics with the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

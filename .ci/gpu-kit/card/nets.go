package main

import (
	"math"
	"os"
	"path/filepath"
)

// A shape is a net that speed is measured on. Weights are random, since they don't matter for speed, and the
// file is made where it is used: that of ViT-B/16 has 346 MB.
type shape struct {
	size  int // height and width of images
	build func(*graph) []byte
}

// shapes are the nets of stages/internal/program/testdata/shapes.py, and small ones for rehearsals.
var shapes = map[string]shape{
	"resnet50":    {224, func(g *graph) []byte { return resnet(g, 224, 64, 1000, 3, 4, 6, 3) }},
	"vit_b_16":    {224, func(g *graph) []byte { return vit(g, 224, 16, 768, 12, 12, 1000) }},
	"resnet_tiny": {32, func(g *graph) []byte { return resnet(g, 32, 4, 10, 1, 1, 1, 1) }},
	"vit_tiny":    {32, func(g *graph) []byte { return vit(g, 32, 8, 16, 2, 2, 10) }},
}

// quickstartSize is the size of the images of the quickstart's nets.
const quickstartSize = 64

// findNet returns the file of a net and the size of its images. It writes that of a shape if it isn't there;
// other nets are the quickstart's, next to the command.
func findNet(name string) (path string, size int, err error) {
	s, ok := shapes[name]
	if !ok {
		self, err := os.Executable()
		return filepath.Join(filepath.Dir(self), "quickstart", name+".onnx"), quickstartSize, err
	}
	dir := filepath.Join(os.TempDir(), "gpu-kit-nets")
	path = filepath.Join(dir, name+".onnx")
	if _, err := os.Stat(path); err == nil {
		return path, s.size, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(path+".part", s.build(newGraph()), 0o666); err != nil {
		return "", 0, err
	}
	return path, s.size, os.Rename(path+".part", path)
}

// resnet returns the residual net of He et al. 2016 with bottlenecks of so many blocks a stage.
func resnet(g *graph, size, width, classes int, depths ...int) []byte {
	relu := func(x string) string { return g.node("Relu", []string{x}) }
	block := func(x string, inputs, outputs, kernel, stride int) string {
		deviation := math.Sqrt(2 / float64(inputs*kernel*kernel))
		pad := kernel / 2
		x = g.node("Conv", []string{x, g.normal(deviation, outputs, inputs, kernel, kernel)},
			property{"kernel_shape", []int{kernel, kernel}}, property{"strides", []int{stride, stride}},
			property{"pads", []int{pad, pad, pad, pad}})
		variance := func() float64 { return 0.5 + g.rand.Float64() }
		return g.node("BatchNormalization", []string{x, g.constant(1, outputs), g.constant(0, outputs),
			g.normal(0.1, outputs), g.filled(variance, outputs)})
	}
	x := relu(block("input", 3, width, 7, 2))
	x = g.node("MaxPool", []string{x}, property{"kernel_shape", []int{3, 3}},
		property{"strides", []int{2, 2}}, property{"pads", []int{1, 1, 1, 1}})
	inputs := width
	for stage, depth := range depths {
		inner := width << stage
		for i := range depth {
			stride := 1
			if stage > 0 && i == 0 {
				stride = 2
			}
			short := x
			if inputs != 4*inner || stride > 1 {
				short = block(x, inputs, 4*inner, 1, stride)
			}
			x = relu(block(x, inputs, inner, 1, 1))
			x = relu(block(x, inner, inner, 3, stride))
			x = relu(g.node("Add", []string{block(x, inner, 4*inner, 1, 1), short}))
			inputs = 4 * inner
		}
	}
	x = g.node("Flatten", []string{g.node("GlobalAveragePool", []string{x})}, property{"axis", 1})
	x = g.node("Gemm", []string{x, g.normal(1/math.Sqrt(float64(inputs)), classes, inputs),
		g.constant(0, classes)}, property{"transB", 1})
	return g.model(size, x, classes)
}

// vit returns the vision transformer of Dosovitskiy et al. 2021.
func vit(g *graph, size, patch, width, depth, heads, classes int) []byte {
	side := size / patch
	tokens, each := side*side+1, width/heads
	linear := func(x string, inputs, outputs int) string {
		x = g.node("MatMul", []string{x, g.normal(1/math.Sqrt(float64(inputs)), inputs, outputs)})
		return g.node("Add", []string{x, g.constant(0, outputs)})
	}
	norm := func(x string) string {
		return g.node("LayerNormalization", []string{x, g.constant(1, width), g.constant(0, width)},
			property{"axis", -1}, property{"epsilon", float32(1e-6)})
	}
	transpose := func(x string, perm ...int) string {
		return g.node("Transpose", []string{x}, property{"perm", perm})
	}
	gelu := func(x string) string {
		e := g.node("Erf", []string{g.node("Div", []string{x, g.constant(math.Sqrt2)})})
		e = g.node("Mul", []string{x, g.node("Add", []string{e, g.constant(1)})})
		return g.node("Mul", []string{e, g.constant(0.5)})
	}
	attend := func(x string) string {
		qkv := g.node("Reshape", []string{linear(x, width, 3*width), g.ints(0, tokens, 3, heads, each)})
		qkv = transpose(qkv, 2, 0, 3, 1, 4)
		take := func(i int) string {
			return g.node("Gather", []string{qkv, g.scalar(i)}, property{"axis", 0})
		}
		weights := g.node("MatMul", []string{take(0), transpose(take(1), 0, 1, 3, 2)})
		weights = g.node("Mul", []string{weights, g.constant(1 / math.Sqrt(float64(each)))})
		weights = g.node("Softmax", []string{weights}, property{"axis", -1})
		x = transpose(g.node("MatMul", []string{weights, take(2)}), 0, 2, 1, 3)
		return linear(g.node("Reshape", []string{x, g.ints(0, tokens, width)}), width, width)
	}

	deviation := 1 / math.Sqrt(float64(3*patch*patch))
	x := g.node("Conv", []string{"input", g.normal(deviation, width, 3, patch, patch), g.constant(0, width)},
		property{"kernel_shape", []int{patch, patch}}, property{"strides", []int{patch, patch}})
	x = transpose(g.node("Reshape", []string{x, g.ints(0, width, side*side)}), 0, 2, 1)
	batch := g.node("Gather", []string{g.node("Shape", []string{x}), g.ints(0)}, property{"axis", 0})
	batch = g.node("Concat", []string{batch, g.ints(1, width)}, property{"axis", 0})
	token := g.node("Expand", []string{g.normal(0.02, 1, 1, width), batch})
	x = g.node("Concat", []string{token, x}, property{"axis", 1})
	x = g.node("Add", []string{x, g.normal(0.02, 1, tokens, width)})
	for range depth {
		x = g.node("Add", []string{x, attend(norm(x))})
		x = g.node("Add", []string{x, linear(gelu(linear(norm(x), width, 4*width)), 4*width, width)})
	}
	x = g.node("Gather", []string{norm(x), g.scalar(0)}, property{"axis", 1})
	return g.model(size, linear(x, width, classes), classes)
}

package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// The families of architectures that experiments/architectures.yaml measures.
const (
	FamilyCNN      = "CNN"
	FamilyNormCNN  = "CNN with batch normalisation"
	FamilyConvNeXt = "ConvNeXt"
	FamilyViT      = "ViT"
	FamilySwin     = "Swin"
	FamilyMixer    = "MLP-Mixer"
)

// The operators that nets of the families may have, after simplification. Any other one makes a net a
// stranger: what is measured of a family isn't known of a net with gates, other activations or other pools.
var (
	moves = []string{"Cast", "Concat", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice",
		"Split", "Squeeze", "Transpose", "Unsqueeze"}
	linear = []string{"Add", "Conv", "Div", "Gemm", "GlobalAveragePool", "MatMul", "Mul", "ReduceMean",
		"Sub"}
	rectified   = []string{"AveragePool", "BatchNormalization", "MaxPool", "Relu"}
	layerNormed = []string{"Erf", "Gelu", "LayerNormalization"}
	withSoftmax = append(slices.Clone(layerNormed), "Softmax")
)

// A structure has the facts of a graph by which families differ.
type structure struct {
	*onnx.Graph
	ops     map[string]int
	convs   []kernels
	weights [][]int // shapes of the constant matrices of dense layers
	gates   int     // products of two values of the image, less one for each Erf, of whose GELU one is a part
	pairs   int     // matrix products of two values of the image
}

// A kernels is a Conv, by the shape of its output and its weights.
type kernels struct {
	output                []int // shape
	kernel, stride        []int
	groups, in, out, pads int
}

// patches reports whether windows of the convolution don't overlap and leave nothing out.
func (c kernels) patches() bool {
	return c.groups == 1 && c.kernel[0] > 1 && slices.Equal(c.kernel, c.stride) && c.pads == 0
}

// depthwise reports whether each channel has a large window of its own, as in ConvNeXt.
func (c kernels) depthwise() bool {
	return c.groups == c.out && c.in == 1 && min(c.kernel[0], c.kernel[1]) >= 5 &&
		max(c.stride[0], c.stride[1]) == 1
}

// pointwise reports whether the convolution is a dense layer on each place.
func (c kernels) pointwise() bool { return c.groups == 1 && max(c.kernel[0], c.kernel[1]) == 1 }

func structureOf(g *onnx.Graph) structure {
	s := structure{Graph: g, ops: map[string]int{}}
	for _, p := range g.Proto.Graph.Node {
		n := onnx.Node{NodeProto: p}
		s.ops[n.OpType]++
		constant := func(i int) bool { return g.Weight(n.In(i)) != nil }
		switch n.OpType {
		case "Conv":
			if w := g.Shape(n.In(1)); len(w) == 4 {
				c := kernels{output: g.Shape(n.Output[0]), kernel: w[2:], stride: n.Ints("strides"),
					groups: n.Int("group", 1), in: w[1], out: w[0]}
				if c.stride == nil {
					c.stride = []int{1, 1}
				}
				for _, p := range n.Ints("pads") {
					c.pads += p
				}
				s.convs = append(s.convs, c)
			}
		case "Mul":
			if !constant(0) && !constant(1) {
				s.gates++
			}
		case "Gemm", "MatMul":
			switch {
			case constant(1):
				s.weights = append(s.weights, g.Shape(n.In(1)))
			case constant(0):
				s.weights = append(s.weights, g.Shape(n.In(0)))
			default:
				s.pairs++
			}
		}
	}
	s.gates -= s.ops["Erf"]
	return s
}

// only reports whether the net has no operators besides moves, linear ones and these, nor gates.
func (s structure) only(ops []string) bool {
	for op := range s.ops {
		if !slices.Contains(moves, op) && !slices.Contains(linear, op) && !slices.Contains(ops, op) {
			return false
		}
	}
	return s.gates <= 0 && len(s.convs) == s.ops["Conv"]
}

// Families returns the families that a net of images may belong to, by facts of its simplified graph: none
// where they don't suffice. A net is normed if its file has batch normalisation, or traces of it; of a CNN
// without it isn't known whether there was any in training.
func Families(g *onnx.Graph, normed bool) []string {
	s := structureOf(g)
	inputs := g.Inputs()
	switch {
	case g.Root != "" || len(inputs) != 1 || len(g.Shape(inputs[0].Name)) != 4 || len(s.convs) == 0:
		return nil
	case s.cnn() && normed:
		return []string{FamilyNormCNN}
	case s.cnn():
		return []string{FamilyCNN, FamilyNormCNN}
	case normed || s.ops["LayerNormalization"] == 0:
		return nil
	case s.convNeXt():
		return []string{FamilyConvNeXt}
	case s.mixer():
		return []string{FamilyMixer}
	case !s.only(withSoftmax) || !s.onePatches():
		return nil
	}
	if _, err := Attend(g); err == nil {
		return []string{FamilyViT}
	}
	if s.windows() {
		return []string{FamilySwin}
	}
	return nil
}

// cnn reports whether the net has convolutions without groups, and rectifiers.
func (s structure) cnn() bool {
	grouped := func(c kernels) bool { return c.groups > 1 }
	return s.only(rectified) && s.ops["Relu"] > 0 && s.pairs == 0 && len(s.convs) >= 3 &&
		!slices.ContainsFunc(s.convs, grouped)
}

// onePatches reports whether the only convolution makes patches.
func (s structure) onePatches() bool { return len(s.convs) == 1 && s.convs[0].patches() }

// convNeXt reports whether each large convolution is depthwise, with a norm, and the others are patches or
// dense layers.
func (s structure) convNeXt() bool {
	if !s.only(layerNormed) || s.pairs > 0 {
		return false
	}
	depthwise := 0
	for _, c := range s.convs {
		switch {
		case c.depthwise():
			depthwise++
		case !c.patches() && !c.pointwise():
			return false
		}
	}
	return depthwise > 1 && s.ops["LayerNormalization"] >= depthwise
}

// mixer reports whether one convolution makes patches, and dense layers of all their channels alternate with
// dense layers of all places.
func (s structure) mixer() bool {
	c := s.convs[0]
	if !s.only(layerNormed) || s.pairs > 0 || !s.onePatches() || len(c.output) != 4 {
		return false
	}
	tokens, along := c.output[2]*c.output[3], [2]int{}
	for _, w := range s.weights {
		for i, n := range []int{tokens, c.out} {
			if slices.Contains(w, n) {
				along[i]++
			}
		}
	}
	return along[0] > 1 && along[1] > 1
}

// windows reports whether all attention is within windows of equally many tokens.
func (s structure) windows() bool {
	images, tokens, most := s.Shape(s.Inputs()[0].Name)[0], 0, 0 // most windows of an image
	for _, p := range s.Proto.Graph.Node {
		if p.OpType != "Softmax" {
			continue
		}
		shape := s.Shape(p.Output[0])
		rank := len(shape)
		if rank < 4 || shape[rank-1] != shape[rank-2] || tokens > 0 && shape[rank-1] != tokens {
			return false
		}
		tokens = shape[rank-1]
		most = max(most, onnx.Size(shape[:rank-3])/images)
	}
	return most > 1
}

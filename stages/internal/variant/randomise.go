package variant

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Randomise replaces the weights of a share of the layers, counted from the head: the model randomisation of
// Adebayo et al., "Sanity checks for saliency maps", NeurIPS 2018, section 3.
type Randomise struct {
	Share   float64 `json:"share"`   // of the layers, from 0 to 1
	Order   string  `json:"order"`   // cascading or independent
	Weights string  `json:"weights"` // initial or permuted
	Seed    int     `json:"seed"`
}

// Name returns the name of the stage.
func (Randomise) Name() string { return "model/randomise" }

// Spec returns the specification of the model, which is the base's.
func (p Randomise) Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error) {
	return trial(ctx, p, base, base.Spec)
}

// Graph returns the base's graph with other weights.
func (p Randomise) Graph(_ context.Context, base lower.Source, batch int) (*onnx.Graph, error) {
	g, _, err := graphOf(base, batch)
	if err != nil {
		return nil, err
	}
	layers := layersOf(g)
	if len(layers) == 0 {
		return nil, fmt.Errorf("the model has no layer with weights to randomise")
	}
	// Rounding must not add a layer to a whole number of layers.
	count := int(math.Ceil(p.Share*float64(len(layers)) - 1e-9))
	from := len(layers) - count
	chosen := layers[from:]
	if p.Order == "independent" {
		chosen = chosen[:min(1, count)]
	}
	for k, l := range chosen {
		for i, w := range l.weights {
			*w = p.random(g, *w, l.fanIn, fmt.Sprintf("%d %d", from+k, i))
		}
	}
	return g, nil
}

// A layer is a convolution or a matrix product with constant weights.
type layer struct {
	weights []*string // the names that nodes read them and the bias under
	fanIn   int       // number of products in each output
}

// layersOf returns the layers of a graph, in the order of its nodes.
func layersOf(g *onnx.Graph) (layers []layer) {
	constant := func(v string) bool { _, ok := g.Float32s(v); return ok }
	for _, proto := range g.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		if !slices.Contains([]string{"Conv", "ConvTranspose", "Gemm", "MatMul"}, n.OpType) {
			continue
		}
		at := 1
		if !constant(n.In(1)) {
			at = 0
		}
		shape := g.Shape(n.In(at))
		if !constant(n.In(at)) || len(shape) < 2 {
			continue
		}
		l := layer{weights: []*string{&proto.Input[at]}}
		switch {
		case n.OpType == "Conv":
			l.fanIn = onnx.Size(shape[1:])
		case n.OpType == "ConvTranspose":
			l.fanIn = onnx.Size(shape) / max(1, shape[1])
		case at == 0:
			l.fanIn = shape[len(shape)-1]
		case n.OpType == "Gemm":
			l.fanIn = shape[n.ContractedAxis()]
		default:
			l.fanIn = shape[len(shape)-2]
		}
		if bias := biasOf(g, n); bias != nil {
			l.weights = append(l.weights, bias)
		}
		layers = append(layers, l)
	}
	return layers
}

// biasOf returns the name by which a layer's bias is read: by the layer itself, or by the only node that
// reads a matrix product.
func biasOf(g *onnx.Graph, n onnx.Node) *string {
	if n.OpType != "MatMul" {
		if _, ok := g.Float32s(n.In(2)); ok {
			return &n.Input[2]
		}
		return nil
	}
	var readers []*onnxpb.NodeProto
	for _, r := range g.Proto.Graph.Node {
		if slices.Contains(onnx.Taken(r), n.Output[0]) {
			readers = append(readers, r)
		}
	}
	if len(readers) == 1 && readers[0].OpType == "Add" {
		for i, v := range readers[0].Input {
			if _, ok := g.Float32s(v); ok && len(g.Shape(v)) == 1 {
				return &readers[0].Input[i]
			}
		}
	}
	return nil
}

// random adds the replacement of a weight and returns its name. Its numbers depend only on the seed, the
// layer and the weight, not on the other randomised weights.
func (p Randomise) random(g *onnx.Graph, weight string, fanIn int, place string) string {
	old, _ := g.Float32s(weight)
	r := rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "randomise %d: %s", p.Seed, place))))
	v := slices.Clone(old)
	how := cmp.Or(p.Weights, "initial")
	if how == "permuted" {
		r.Shuffle(len(v), func(i, k int) { v[i], v[k] = v[k], v[i] })
	} else {
		bound := 1 / math.Sqrt(float64(max(1, fanIn)))
		for i := range v {
			v[i] = float32(bound * (2*r.Float64() - 1))
		}
	}
	t := onnx.FloatTensor(g.Fresh(weight+"/random"), v, g.Shape(weight)...)
	g.AddWeight(t)
	if how == "permuted" { // others are the same on every processor
		g.Derive(t.Name, fmt.Sprintf("permuted %d %s", p.Seed, place), weight)
	}
	return t.Name
}

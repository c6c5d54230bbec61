package variant

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Noise adds noise to the embedding of a model of texts, the same for all texts: the numbers of a token
// depend on its place alone. The value that methods explain is the embedding with its noise.
type Noise struct {
	Draw    string  `json:"draw"`
	Uniform bool    `json:"uniform"` // within ±scale; otherwise normal, of that standard deviation
	Scale   float64 `json:"scale"`
	Seed    int     `json:"seed"`
}

// Name returns the name of the stage.
func (Noise) Name() string { return "model/noise" }

// Spec returns the specification of the model, which is the base's.
func (p Noise) Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error) {
	if base.Spec.Text == nil {
		return modelfile.Spec{}, &OtherItemsError{"the model takes images, not texts: perturb/noise " +
			"adds noise to images themselves"}
	}
	return trial(ctx, p, base, base.Spec)
}

// Graph returns the base's graph with a sum behind the embedding.
func (p Noise) Graph(_ context.Context, base lower.Source, batch int) (*onnx.Graph, error) {
	g, _, err := graphOf(base, batch)
	if err != nil {
		return nil, err
	}
	e, v := editor{g}, base.Spec.Text.Embedding
	shape := e.Shape(v)
	if e.producer(v) < 0 || len(shape) != 3 {
		return nil, fmt.Errorf("the model's embedding %q isn't a vector a token: its shape is %v", v, shape)
	}
	clean, behind := e.move(v, v+"/clean")
	noise := onnx.FloatTensor(e.Fresh(v+"/noise"), p.draw(shape[1]*shape[2]), 1, shape[1], shape[2])
	e.AddWeight(noise)
	e.insert(behind, e.node("Add", []string{clean, noise.Name}, v, shape))
	return g, nil
}

// draw returns the first n numbers of the noise, so that a shorter text has those of a longer one.
func (p Noise) draw(n int) []float32 {
	r := rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "noise %d %s", p.Seed, p.Draw))))
	out := make([]float32, n)
	for i := range out {
		x := r.NormFloat64()
		if p.Uniform {
			x = 2*r.Float64() - 1
		}
		out[i] = float32(p.Scale * x)
	}
	return out
}

// Package variant rewrites models: a [Rewriter] makes the graph of a model out of the graph of another one,
// its base. What it makes is a model like any other, on which every method, layer and metric works; it is
// stored as the digest of its base and the rewriter's parameters, without weights (see
// [modelfile.Rewrite]).
//
// variant.go lists the rewriters, randomise.go replaces weights, shift.go shifts the input, noise.go adds
// noise to the embedding of texts, cells.go cuts grids of images into cells and stitches them, dense.go makes
// dense layers convolutional. gridpg.go,
// difull.go and dipart.go are the settings of Rao, Böhle and Schiele, "Towards Better Understanding
// Attribution Methods", CVPR 2022, section 3.1.
package variant

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// An OtherItemsError is the reason why a rewriter for models of images doesn't rewrite one of texts or of
// signals, or the reverse.
type OtherItemsError struct{ Why string }

func (e *OtherItemsError) Error() string { return e.Why }

// A Rewriter rewrites models. Its exported fields are its parameters, which JSON holds.
type Rewriter interface {
	// Name is the name of the stage that rewrites, such as model/difull.
	Name() string
	// Spec returns the specification of the rewritten model, or the reason why the base can't be rewritten.
	Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error)
	// Graph returns the graph for a batch of that many images, as [lower.Graph] does of a file. The caller
	// may change it. base.Graph must be set.
	Graph(ctx context.Context, base lower.Source, batch int) (*onnx.Graph, error)
}

// rewriters returns a rewriter of each kind.
func rewriters() []Rewriter {
	return []Rewriter{&GridPG{}, &DiFull{}, &DiPart{}, &Randomise{}, &Shift{}, &Noise{}}
}

// Read returns the rewriter that made a model.
func Read(r modelfile.Rewrite) (Rewriter, error) {
	for _, w := range rewriters() {
		if w.Name() == r.Name {
			if err := json.Unmarshal(r.With, w); err != nil {
				return nil, fmt.Errorf("a damaged model: %s: %w", r.Name, err)
			}
			return w, nil
		}
	}
	return nil, fmt.Errorf("a model made by %s, which this version doesn't have", r.Name)
}

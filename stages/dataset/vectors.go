package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/npy"
)

// VectorsParams are the parameters of [Vectors].
type VectorsParams struct {
	Path string `yaml:"path" doc:"a .npy file of one vector [D], or of K of them [K, D], real numbers" file:"read"`
}

// Validate requires a file.
func (p VectorsParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: a .npy file")
	}
	return nil
}

// Vectors are vectors that expressions compare a model's outputs with.
var Vectors = stages.New(stages.Def[VectorsParams]{
	Name: "dataset/vectors",
	Doc: `vectors in a NumPy file, such as the embeddings of texts

What the word vectors is in a target such as zero-shot or cosine(output, vectors): wire it to
model/predict, whose targets the methods and curves read.`,
	Version:  1,
	Relation: stages.Whole,
	Outputs:  []stages.Port{{Name: "vectors", Type: stages.Vectors, Doc: "the vectors, [D] or [K, D]"}},
	Sources: func(p VectorsParams, _ []string) ([]stages.Source, error) {
		return []stages.Source{{ID: "vectors", File: p.Path}}, nil
	},
	Facts: func(p VectorsParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		a, err := p.read()
		if err != nil {
			return nil, nil // Run says why
		}
		return map[string]stages.Facts{"vectors": {"shape": strings.Trim(fmt.Sprint(a.Shape), "[]")}}, nil
	},
	Run: func(_ context.Context, p VectorsParams, e *stages.Env) error {
		a, err := p.read()
		if err != nil {
			return err
		}
		values := a.Float64s()
		if k := slices.IndexFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }); k >= 0 {
			return fmt.Errorf("%s: number %d is %v", p.Path, k, values[k])
		}
		e.Set("vectors", stages.NewTensor(values, a.Shape...).Encode())
		return nil
	},
})

// read returns the file's vectors.
func (p VectorsParams) read() (npy.Array, error) {
	b, err := stages.ReadFile(p.Path, maxVectors)
	if err != nil {
		return npy.Array{}, err
	}
	a, err := npy.Decode(b)
	if err == nil && (len(a.Shape) < 1 || len(a.Shape) > 2 || slices.Contains(a.Shape, 0)) {
		err = fmt.Errorf("an array of shape %v is neither a vector nor a list of vectors", a.Shape)
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", p.Path, err)
	}
	return a, nil
}

// maxVectors limits the file of vectors.
const maxVectors = 1 << 30

package score

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// DrawParams are the parameters that the metrics of robustness have in common.
type DrawParams struct {
	Draw    string `yaml:"draw" doc:"the axis of the draws" axis:"draws"`
	Values  string `yaml:"values" doc:"a pixel's relevance: the sum over channels, or its magnitude" choices:"signed|magnitude"`
	Variant string `yaml:"variant" doc:"which definition to follow" choices:"paper|official"`
}

// drawsVariant names the variant of a metric of as many draws as over collapses.
func (p DrawParams) drawsVariant(of string, in map[string]stages.Facts) string {
	name := fmt.Sprintf("%s of %s draws", of, in["draws"]["cells"])
	if v := tag(p.Variant); v != "" {
		name = v + ", " + name
	}
	return name
}

// A map is what a metric of robustness reads of one: a number a pixel, row by row.
func (p DrawParams) values(payload []byte) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	v, _, _, err := metric.Values(t, p.Values)
	return v, err
}

// drawOf reads the map of a draw, which has the size of the original's.
func (p DrawParams) drawOf(payload []byte, original []float64) ([]float64, error) {
	v, err := p.values(payload)
	if err == nil && len(v) != len(original) {
		err = fmt.Errorf("a map of %d pixels, and the original's has %d", len(v), len(original))
	}
	return v, err
}

// pixelsOf returns an image in values from 0 to 1.
func pixelsOf(payload []byte) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	v := t.Float64s()
	if t.DType == stages.U8 {
		for i := range v {
			v[i] /= 255
		}
	}
	return v, nil
}

// euclidean returns ‖a−b‖₂; b may be nil for 0.
func euclidean(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		if b != nil {
			x -= b[i]
		}
		sum += float64(x * x) // rounded alike where processors could add in the same step
	}
	return math.Sqrt(sum)
}

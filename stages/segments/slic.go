package segments

import (
	"math/rand/v2"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/superpixel"
)

// SLICParams are the parameters of [SLIC].
type SLICParams struct {
	Source
	Segments      int     `yaml:"segments" doc:"about how many segments" min:"1" max:"1000000"`
	Compactness   float64 `yaml:"compactness" doc:"weight of nearness in space against that of colours: large values make squares" min:"0.000001" max:"1000000"`
	Iterations    int     `yaml:"iterations" doc:"how often segments are assigned anew" min:"1" max:"10000"`
	Sigma         float64 `yaml:"sigma" doc:"standard deviation in pixels of the Gaussian filter before it; 0: none" min:"0" max:"1000"`
	MinSizeFactor float64 `yaml:"min_size_factor" doc:"share of the mean size below which a segment joins a neighbour" min:"0" max:"1000"`
	MaxSizeFactor float64 `yaml:"max_size_factor" doc:"share of the mean size at which a segment is cut" min:"0" max:"1000"`
}

// SLIC divides images into superpixels of about equal size.
var SLIC = colourStage(stages.Def[SLICParams]{
	Name: "segments/slic",
	Doc: `superpixels of about equal size, by SLIC

Centres on a regular grid take the pixels that are nearest in colour and space, and move
to their means; then what isn't connected is cut apart. Colours are compared in CIELAB,
those of a model with another number of channels than three as they are. Labels equal
those of scikit-image 0.26, slic(image, start_label=0), whose parameters have the names
n_segments and max_num_iter, and its defaults. Achanta et al., "SLIC Superpixels Compared
to State-of-the-Art Superpixel Methods", TPAMI 2012.`,
	Version: 1,
	Defaults: SLICParams{Source: Source{"pixels"}, Segments: 100, Compactness: 10, Iterations: 10,
		MinSizeFactor: 0.5, MaxSizeFactor: 3},
})

func (p SLICParams) labels(m superpixel.Image, _ *rand.Rand) []uint32 {
	return superpixel.SLIC{Segments: p.Segments, Compactness: p.Compactness, Iterations: p.Iterations,
		Sigma: p.Sigma, Smallest: p.MinSizeFactor, Largest: p.MaxSizeFactor}.Labels(m)
}

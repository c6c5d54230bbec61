package segments

import (
	"math/rand/v2"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/superpixel"
)

// FelzenszwalbParams are the parameters of [Felzenszwalb].
type FelzenszwalbParams struct {
	Source
	Scale   float64 `yaml:"scale" doc:"the larger, the larger segments" min:"0" max:"1000000"`
	Sigma   float64 `yaml:"sigma" doc:"standard deviation in pixels of the Gaussian filter before it; 0: none" min:"0" max:"1000"`
	MinSize int     `yaml:"min_size" doc:"pixels of a segment, at least" min:"1" max:"1000000000"`
}

// Felzenszwalb divides images into segments of similar colour, of any size.
var Felzenszwalb = colourStage(stages.Def[FelzenszwalbParams]{
	Name: "segments/felzenszwalb",
	Doc: `segments of similar colour, of any size and shape

Neighbouring pixels are joined from the most similar pair to the least, while two
segments differ less from one another than within themselves, by a margin that shrinks
with their size. Labels equal those of scikit-image 0.26, felzenszwalb, with its
parameters and defaults, except where pairs differ equally: here they keep their order.
Felzenszwalb and Huttenlocher, "Efficient Graph-Based Image Segmentation", IJCV 2004.`,
	Version:  1,
	Defaults: FelzenszwalbParams{Source: Source{"pixels"}, Scale: 1, Sigma: 0.8, MinSize: 20},
})

func (p FelzenszwalbParams) labels(m superpixel.Image, _ *rand.Rand) []uint32 {
	return superpixel.Felzenszwalb{Scale: p.Scale, Sigma: p.Sigma, Smallest: p.MinSize}.Labels(m)
}

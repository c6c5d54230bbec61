package segments

import (
	"math/rand/v2"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/superpixel"
)

// QuickshiftParams are the parameters of [Quickshift].
type QuickshiftParams struct {
	Source
	KernelSize float64 `yaml:"kernel_size" doc:"standard deviation of the density's kernel: large values make few segments" min:"1" max:"100"`
	MaxDist    float64 `yaml:"max_dist" doc:"the largest distance from a pixel to one of higher density in its segment" min:"0" max:"1000000"`
	Ratio      float64 `yaml:"ratio" doc:"weight of colours against nearness in space" min:"0" max:"1000000"`
	Sigma      float64 `yaml:"sigma" doc:"standard deviation in pixels of the Gaussian filter before it; 0: none" min:"0" max:"1000"`
}

// Quickshift divides images into the basins of a density over colour and space.
var Quickshift = colourStage(stages.Def[QuickshiftParams]{
	Name: "segments/quickshift",
	Doc: `segments around modes of the density of colours in space

Each pixel is joined to the nearest one around which pixels are denser in colour (CIELAB)
and space. The parameters and defaults are those of scikit-image 0.26, quickshift; LIME
takes kernel_size: 4, max_dist: 200, ratio: 0.2. Labels equal scikit-image's, given the
same draws, which break ties between equal densities: here they depend on the experiment's
seed and the image, so that flat areas may be divided otherwise. Vedaldi and Soatto,
"Quick Shift and Kernel Methods for Mode Seeking", ECCV 2008.`,
	Version:  1,
	Seeded:   true,
	Defaults: QuickshiftParams{Source: Source{"pixels"}, KernelSize: 5, MaxDist: 10, Ratio: 1},
})

func (p QuickshiftParams) labels(m superpixel.Image, draws *rand.Rand) []uint32 {
	q := superpixel.Quickshift{Kernel: p.KernelSize, Distance: p.MaxDist, Ratio: p.Ratio, Sigma: p.Sigma}
	return q.Labels(m, draws.NormFloat64)
}

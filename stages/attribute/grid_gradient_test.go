package attribute

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// kink is the tolerance where one of the official samples along a path lies so near a kink of the net that
// float32 convolutions differ in the side they take: float64 automatic differentiation lies 3e-3 from the
// official map too.
const kink = 5e-3

// A grid is a layer of an official net in one of the settings of Rao et al., with the images that one head
// was shown.
type grid struct {
	net, setting string
	head         int
	name, layer  string // Input, Middle or Final, and the value it means
	in           map[string][]stages.Data
	official     map[string]npy.Array
	numbers      []int // of each image's map among the official ones
}

// forEachGrid goes through nets, settings, heads and layers.
func forEachGrid(t *testing.T, look func(g grid)) {
	layers := map[string]string{"Input": "input", "Middle": "middle", "Final": "final"}
	for _, net := range []string{"gapcnn", "smallcnn"} {
		for _, setting := range stagetest.Sample(t, 3, []string{"GridPG", "DiFull", "DiPart"}) {
			a := read(t, "gridpg_difull_dipart", net+"_"+setting+".npz")
			heads := [][]int{{0}, {3}}
			if setting == "GridPG" {
				heads = [][]int{{0, 1, 2, 3}}
			}
			model := gridNet(t, net, setting)
			for k, some := range heads {
				g := grid{net: net, setting: setting, head: some[0], official: a}
				g.in = map[string][]stages.Data{"model": {model}}
				var images, targets [][]byte
				grids, labels := a["grids"].Float32s(), a["labels"].Int64s()
				const size = 3 * gridSide * gridSide
				for i := range len(grids) / size {
					for h, head := range some {
						images = append(images, stages.NewTensor(grids[i*size:(i+1)*size], 3, gridSide,
							gridSide).Encode())
						targets = append(targets, stages.NewTensor([]int64{labels[4*i+head], -1, int64(head)},
							3).Encode())
						g.numbers = append(g.numbers, i*len(some)*len(heads)+k+h)
					}
				}
				g.in["images"] = []stages.Data{stagetest.Items(nil, images...)}
				g.in["targets"] = []stages.Data{stagetest.Items(nil, targets...)}
				for g.name, g.layer = range layers {
					look(g)
				}
			}
		}
	}
}

// compare holds a stage's maps against the official ones of a method, where there are any.
func (g grid) compare(t *testing.T, method string, stage stages.Stage, params any, tolerance float64) {
	t.Helper()
	want, ok := g.official["attr_"+method+"_"+g.name]
	if !ok {
		return
	}
	side := want.Shape[3]
	for i, b := range stagetest.Run(t, stage, params, g.in).Payloads["maps"] {
		official := want.Float64s()[g.numbers[i]*side*side:][:side*side]
		large := singles(resized(official, side, side, gridSide, gridSide, "bilinear"))
		what := fmt.Sprintf("%s %s %s at %s, head %d, item %d", g.net, g.setting, method, g.name, g.head, i)
		if got := tensor(t, b); math.IsNaN(official[0]) {
			if slices.ContainsFunc(append(got, large...), func(v float32) bool { return v == v }) {
				t.Errorf("%s: the official map is undefined everywhere, and ours isn't", what)
			}
		} else {
			near(t, what, got, large, tolerance)
		}
	}
}

// TestOfficialGridGradients holds the methods of the gradient, and occlusion, at the input, the middle and
// the final layer, against the code of Rao et al. in its settings.
func TestOfficialGridGradients(t *testing.T) {
	forEachGrid(t, func(g grid) {
		p := tappedAt(g.layer)
		g.compare(t, "Grad", Saliency, &SaliencyParams{plain(p), true}, cam32)
		g.compare(t, "GB", GuidedBackprop, &GuidedBackpropParams{p, true}, cam32)
		occlusion := &OcclusionParams{p, "official", picture.Square(5), picture.Square(2), "zero"}
		if g.name == "Input" {
			occlusion.Window, occlusion.Stride = picture.Square(16), picture.Square(8)
		}
		g.compare(t, "Occlusion", Occlusion, occlusion, official32)
		g.compare(t, "IxG", InputXGradient, &InputXGradientParams{plain(p)}, cam32)
		tolerance := cam32
		if g.net == "smallcnn" && g.name == "Input" {
			tolerance = kink
		}
		g.compare(t, "IntGrad", IntegratedGradients, &IntegratedGradientsParams{plain(p), 20,
			"gauss-legendre",
			"zero"}, tolerance)
	})
}

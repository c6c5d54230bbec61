package attribute

import (
	"fmt"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// kink is the tolerance where one of the official samples along a path lies so
// near a kink of the net that float32 convolutions differ in the side they take:
// float64 automatic differentiation lies 3e-3 from the official map too.
const kink = 5e-3

// TestOfficialGridGradients holds the methods of the gradient, at the input, the
// middle and the final layer, against the code of Rao et al. in its settings. Where
// the setting cuts a layer into cells before it, the layer isn't looked at.
func TestOfficialGridGradients(t *testing.T) {
	layers := map[string]string{"Input": "input", "Middle": "/relu2/Relu_output_0", "Final": relu3}
	for _, net := range []string{"gapcnn", "smallcnn"} {
		for _, setting := range []string{"GridPG", "DiFull", "DiPart"} {
			a := read(t, "gridpg_difull_dipart", net+"_"+setting+".npz")
			heads := [][]int{{0}, {3}}
			if setting == "GridPG" {
				heads = [][]int{{0, 1, 2, 3}}
			}
			for k, some := range heads {
				in := map[string][]stages.Data{"model": {gridNet(t, net, setting, some[0])}}
				var images, targets [][]byte
				var numbers []int // of the map among the official ones
				grids, labels := a["grids"].Float32s(), a["labels"].Int64s()
				const size = 3 * gridSide * gridSide
				for g := range len(grids) / size {
					for h, head := range some {
						images = append(images, stages.NewTensor(grids[g*size:(g+1)*size], 3, gridSide, gridSide).Encode())
						targets = append(targets, stages.NewTensor(labels[4*g+head:4*g+head+1], 1).Encode())
						numbers = append(numbers, g*len(some)*len(heads)+k+h)
					}
				}
				in["images"] = []stages.Data{stagetest.Items(nil, images...)}
				in["targets"] = []stages.Data{stagetest.Items(nil, targets...)}
				for name, layer := range layers {
					if setting == "DiFull" && name != "Input" {
						continue
					}
					p := tappedAt(layer)
					for method, m := range map[string]struct {
						stage  stages.Stage
						params any
					}{
						"Grad":    {Saliency, &SaliencyParams{p, true}},
						"GB":      {GuidedBackprop, &GuidedBackpropParams{p, true}},
						"IxG":     {InputXGradient, &InputXGradientParams{p}},
						"IntGrad": {IntegratedGradients, &IntegratedGradientsParams{p, 20, "gauss-legendre", "zero"}},
						"GradCam": {GradCAM, &GradCAMParams{p, true, "bilinear"}},
					} {
						want, ok := a["attr_"+method+"_"+name]
						if !ok {
							continue
						}
						tolerance := cam32
						if method == "IntGrad" && net == "smallcnn" && name == "Input" {
							tolerance = kink
						}
						side := want.Shape[3]
						for i, b := range stagetest.Run(t, m.stage, m.params, in).Payloads["maps"] {
							official := want.Float64s()[numbers[i]*side*side:][:side*side]
							large := singles(resized(official, side, side, gridSide, gridSide, "bilinear"))
							near(t, fmt.Sprintf("%s %s %s at %s, head %d, item %d", net, setting, method, name, some[0], i), tensor(t, b), large, tolerance)
						}
					}
				}
			}
		}
	}
}

package attribute

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestDiFullShowsTheCellAlone: on a model whose head sees one cell, maps of methods of gradients and of
// relevance at the input are exactly 0 outside the cell, contrastive ones among them, and not 0 in it.
func TestDiFullShowsTheCellAlone(t *testing.T) {
	some := stagetest.Sample(t, 3, []stages.Stage{Saliency, InputXGradient, IntegratedGradients,
		GuidedBackprop,
		Deconvolution, DeepLIFT, LRPEpsilon, LRPGamma, LRPAlphaBeta, LRPZPlus, LRPComposite, CLRP, RAP,
		CRAP, AbsLRP, AGI, LeftIG})
	for _, net := range []string{"vgg", "resnet"} {
		base := modeltest.Model(t, model.ONNXParams{Path: "../../experiments/quickstart/" + net + ".onnx",
			Preset: "half"})
		wide := modeltest.Rewritten(t, model.DiFull, base)
		var images, targets [][]byte
		side := 128
		for _, head := range []int64{1, 2} {
			pixels := make([]float32, 3*side*side)
			for i := range pixels {
				pixels[i] = float32(0.5 + 0.5*math.Sin(float64(i)*0.37+float64(head)))
			}
			images = append(images, stages.NewTensor(pixels, 3, side, side).Encode())
			targets = append(targets, stages.NewTensor([]int64{2, -1, head}, 3).Encode())
		}
		in := map[string][]stages.Data{"model": {wide}, "images": {stagetest.Items(nil, images...)},
			"targets": {stagetest.Items(nil, targets...)}}
		for _, s := range some {
			e, err := stagetest.Env(&s, in)
			if err != nil {
				t.Fatal(err)
			}
			params := s.NewParams()
			if err := s.Run(t.Context(), params, e); err != nil {
				t.Errorf("%s %s: %v", net, s.Name, err)
				continue
			}
			for _, o := range e.Outputs {
				if o.Port != "maps" {
					continue
				}
				outside, inside := 0.0, 0.0
				for i, v := range tensor(t, o.Data) {
					y, x := i/side, i%side
					if 2*(y/64)+x/64 == 1+o.Call {
						inside += math.Abs(float64(v))
					} else {
						outside += math.Abs(float64(v))
					}
				}
				if outside != 0 || !(inside > 0) {
					t.Errorf("%s %s, head %d: %g outside its cell, %g inside", net, s.Name, 1+o.Call, outside,
						inside)
				}
			}
		}
	}
}

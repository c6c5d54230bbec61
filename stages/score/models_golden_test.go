package score

import (
	"fmt"
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// drawOf returns row k of an array: what it has of a draw.
func drawOf(a npy.Array, k int) npy.Array {
	size := len(a.Raw) / a.Shape[0]
	a.Raw, a.Shape = a.Raw[k*size:(k+1)*size], a.Shape[1:]
	return a
}

// TestPeersStabilityOnNets compares RIS, ROS and RRS of the changes that model/change measures on two nets
// with those of Quantus 0.6.0 for the same draws. Quantus has NaN where the prediction changes; with several
// draws it would have it for the image.
func TestPeersStabilityOnNets(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/models.npz")
	nans := 0
	for _, name := range []string{"odd", "row"} {
		in := map[string][]stages.Data{"maps": {modeltest.Rows(t, arrays[name+".a"])}}
		draws := arrays[name+".xx"].Shape[0]
		for k := range draws {
			on := modeltest.Small(t, name)
			delete(on, "targets")
			on["other"] = []stages.Data{modeltest.Rows(t, drawOf(arrays[name+".xx"], k))}
			r := stagetest.Run(t, model.Change, &model.ChangeParams{Layer: "hidden", Epsilon: 1e-6}, on)
			at := fmt.Sprintf("d%d", k)
			in["draws"] = append(in["draws"],
				stagetest.At(modeltest.Rows(t, drawOf(arrays[name+".aa"], k)), "draw", at))
			in["changes"] = append(in["changes"],
				stagetest.At(stagetest.Items(nil, r.Payloads["changes"]...), "draw", at))
		}
		r := stagetest.Run(t, RelativeStability, nil, in)
		changed := scalars(t, stagetest.Items(nil, r.Payloads["changed"]...))
		for _, port := range stabilities {
			theirs := arrays[name+"."+port].Float64s()
			for i, got := range scalars(t, stagetest.Items(nil, r.Payloads[port]...)) {
				want, left := 0.0, 0
				for k := range draws {
					if v := theirs[k*len(changed)+i]; !math.IsNaN(v) {
						want, left = math.Max(want, v), left+1
					}
				}
				if !(math.Abs(got-want) <= 1e-4*want) {
					t.Errorf("%s, image %d: %s is %v, want %v", name, i, port, got, want)
				}
				if want := 1 - float64(left)/float64(draws); changed[i] != want {
					t.Errorf("%s, image %d: the share of changed predictions is %v, want %v", name, i,
						changed[i], want)
				}
				nans += draws - left
			}
		}
	}
	if nans == 0 {
		t.Error("no draw changes a prediction")
	}
}

// TestPeersRandomisation compares scores of maps with those of Quantus 0.6.0, which made the maps: of two
// nets, of the nets with random weights, and of another class.
func TestPeersRandomisation(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/models.npz")
	for _, name := range []string{"odd", "row"} {
		for _, tt := range []struct {
			stage         stages.Stage
			params        any
			scores, other string
		}{
			{EMPRT, nil, "emprt", "random"},
			{RankCorrelation, signedRanks(), "mprt", "mprt.random"},
			{RankCorrelation, signedRanks(), "random-logit", "off"},
		} {
			r := stagetest.Run(t, tt.stage, tt.params, map[string][]stages.Data{
				"maps":  {modeltest.Rows(t, arrays[name+".a"])},
				"other": {modeltest.Rows(t, arrays[name+"."+tt.other])},
			})
			check(t, r, "scores", 1e-12, arrays[name+"."+tt.scores].Float64s()...)
		}
		in := map[string][]stages.Data{}
		for port, of := range map[string]string{"maps": ".smprt.maps", "other": ".smprt.random"} {
			draws := map[string][]stages.Data{}
			for k := range arrays[name+of].Shape[0] {
				draws["maps"] = append(draws["maps"], stagetest.At(modeltest.Rows(t,
					drawOf(arrays[name+of], k)), "draw", fmt.Sprintf("d%d", k)))
			}
			r := stagetest.Run(t, maps.Mean, nil, draws)
			in[port] = []stages.Data{stagetest.Items(r.Facts["maps"], r.Payloads["maps"]...)}
		}
		r := stagetest.Run(t, RankCorrelation, signedRanks(), in)
		check(t, r, "scores", 1e-12, arrays[name+".smprt"].Float64s()...)
	}
}

func signedRanks() any {
	p := RankCorrelation.NewParams().(*RankCorrelationParams)
	p.Values = "signed"
	return p
}

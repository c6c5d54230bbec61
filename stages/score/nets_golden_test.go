package score

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

var drawnFile = flag.String("drawn", "", "write the subsets of TestPeersOnNets to this file")

// netCases are the subsets of testdata/nets.npz.
var netCases = []struct {
	name, net string
	change    func(p *perturb.SubsetParams)
}{
	{"fixed segments", "odd", func(p *perturb.SubsetParams) {
		p.Unit, p.Sizes, p.Samples, p.Substrate = "segment", []int{2}, 12, "black"
	}},
	{"sizes of segments", "odd", func(p *perturb.SubsetParams) {
		p.Unit, p.Shares, p.Samples, p.Substrate = "segment", []float64{0.3, 0.5, 0.8}, 8, "zero"
	}},
	{"bernoulli regions", "odd", func(p *perturb.SubsetParams) {
		p.Draw, p.P, p.Samples = "bernoulli", 0.3, 20
		p.Unit, p.Region, p.Substrate = "region", 4, "segment-mean"
	}},
	{"single segments", "odd", func(p *perturb.SubsetParams) {
		p.Draw, p.Unit, p.Substrate = "single", "segment", "black"
	}},
	{"single pixels", "odd", func(p *perturb.SubsetParams) { p.Draw, p.Substrate = "single", "zero" }},
	{"row fixed", "row", func(p *perturb.SubsetParams) {
		p.Sizes, p.Samples, p.Substrate = []int{4}, 10, "zero"
	}},
	{"row single", "row", func(p *perturb.SubsetParams) { p.Draw, p.Substrate = "single", "zero" }},
}

// TestPeersOnNets runs two nets on the subsets of perturb/subset, and compares each score of them with that
// of Quantus 0.6.0, captum 0.9.0, or the paper's formula in numpy: images of three channels and an odd size,
// a grey and a flat one, segments that are no squares, regions that the border cuts off, and images of one
// row.
func TestPeersOnNets(t *testing.T) {
	arrays := modeltest.SmallArrays(t)
	drawn := map[string]modeltest.Drawn{}
	compared := map[string]int{}
	for _, c := range netCases {
		in := modeltest.Small(t, c.net)
		p := perturb.Subset.NewParams().(*perturb.SubsetParams)
		c.change(p)
		if p.Unit == "segment" {
			in["segments"] = []stages.Data{modeltest.Rows(t, arrays["segments"])}
		}
		r := stagetest.Run(t, perturb.Subset, p, in)
		s := modeltest.Drawn{Net: c.net, Substrate: p.Substrate}
		given := map[string][]stages.Data{"maps": {modeltest.Rows(t, arrays[c.net+".a"])}}
		for port, to := range map[string]string{"subsets": "subsets", "responses": "responses",
			"segments": "units", "differences": "differences"} {
			given[to] = []stages.Data{stagetest.Items(r.Facts[port], r.Payloads[port]...)}
		}
		for i := range r.Payloads["subsets"] {
			s.Add(t, r.Payloads["segments"][i], r.Payloads["subsets"][i])
		}
		if drawn[c.name] = s; *drawnFile != "" {
			continue
		}
		for i, rows := range s.Rows {
			var all []int64
			for _, row := range rows {
				for _, b := range row {
					all = append(all, int64(b-'0'))
				}
			}
			if !slices.Equal(all, integers(arrays[c.name+": rows "+string(rune('0'+i))])) {
				t.Fatalf("%s: image %d has other subsets than testdata/nets.npz: make it again", c.name, i)
			}
		}
		for key, want := range arrays {
			of, ok := strings.CutPrefix(key, c.name+": ")
			of, peer, scored := strings.Cut(of, " ")
			if !ok || !scored || of == "rows" {
				continue
			}
			name, port, _ := strings.Cut(of, ".")
			compared[peer]++
			checkNet(t, c.name, name, port, peer, given, want.Float64s())
		}
	}
	if *drawnFile != "" {
		b, err := json.Marshal(drawn)
		if err == nil {
			err = os.WriteFile(*drawnFile, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Skipf("wrote %s, which the script of the goldens reads", *drawnFile)
	}
	if compared["quantus"] < 7 || compared["captum"] < 5 || compared["numpy"] < 8 {
		t.Errorf("compared scores, by peer: %v", compared)
	}
}

func integers(a npy.Array) (values []int64) {
	for _, v := range a.Float64s() {
		values = append(values, int64(v))
	}
	return values
}

// checkNet compares a score's port with a peer's numbers: the net's responses are of single precision here.
func checkNet(t *testing.T, drawn, name, port, peer string, given map[string][]stages.Data, want []float64) {
	t.Helper()
	of := map[string]stages.Stage{"faithfulness-correlation": FaithfulnessCorrelation,
		"faithfulness-estimate": FaithfulnessEstimate, "infidelity": Infidelity, "mu-fidelity": MuFidelity,
		"monotonicity-correlation": MonotonicityCorrelation, "non-sensitivity": NonSensitivity,
		"sensitivity-n": SensitivityN, "single-deletion": SingleDeletion}[name]
	params := of.NewParams()
	switch p := params.(type) {
	case *InfidelityParams:
		p.Output, p.Map = "logit", "gradient"
	case *NonSensitivityParams:
		p.Response = "logit"
	}
	in := map[string][]stages.Data{}
	for _, p := range of.Inputs {
		in[p.Name] = given[p.Name]
	}
	r := stagetest.Run(t, of, params, in)
	got := scalars(t, stagetest.Items(nil, r.Payloads[port]...))
	for i, w := range want {
		if math.IsNaN(w) != math.IsNaN(got[i]) || math.Abs(got[i]-w) > 2e-6*math.Max(1, math.Abs(w)) {
			t.Errorf("%s: score/%s of image %d has %s %v, by %s %v", drawn, name, i, port, got[i], peer, w)
		}
	}
}

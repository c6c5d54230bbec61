package attribute

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

var drawnFile = flag.String("drawn", "", "write the subsets of TestPeersOnSegments to this file")

// unitValues returns the value that a map has at each unit.
func unitValues(t *testing.T, payload, units []byte) []float64 {
	t.Helper()
	m, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	u, _, _, err := metric.Numbered(units)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, u.Count)
	for i, v := range m.Float64s() {
		values[u.Of[i]] = v
	}
	return values
}

// TestPeersOnSegments compares the values of units with those of captum 0.9.0 and lime 0.2.0.1 on the subsets
// that perturb/subset draws, on two nets: irregular segments of images of three channels and an odd size, of
// which one is grey and one flat, and regions of rows that the border cuts off.
func TestPeersOnSegments(t *testing.T) {
	type values struct {
		modeltest.Drawn
		Values [][]float64
		Fits   []float64
	}
	var file struct{ Cases map[string]values }
	drawn := map[string]modeltest.Drawn{}
	b, err := os.ReadFile("testdata/segments.json")
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil && *drawnFile == "" {
		t.Fatal(err)
	}
	lime := func(features int) any {
		p := LIME.NewParams().(*LIMEParams)
		p.Features = features
		return p
	}
	for _, name := range []string{"odd", "row"} {
		for _, tt := range []struct {
			name, draw, substrate string
			stage                 stages.Stage
			params                any
			tolerance             float64
		}{
			{"kernel-shap", "shapley", "black", KernelSHAP, nil, 2e-5}, // captum's sum isn't exact
			{"feature-ablation", "single", "black", FeatureAblation, nil, 2e-6},
			{"shapley-sampling", "permutation", "black", ShapleySampling, nil, 2e-6},
			{"lime", "bernoulli", "segment-mean", LIME, lime(0), 2e-6},
			{"lime-3", "bernoulli", "segment-mean", LIME, lime(3), 2e-6},
		} {
			in := modeltest.Small(t, name)
			p := perturb.Subset.NewParams().(*perturb.SubsetParams)
			p.Draw, p.Substrate, p.Samples, p.Unit, p.Region = tt.draw, tt.substrate, 12, "region", 2
			if name == "odd" {
				p.Unit = "segment"
				in["segments"] = []stages.Data{modeltest.Rows(t, modeltest.SmallArrays(t)["segments"])}
			}
			r := stagetest.Run(t, perturb.Subset, p, in)
			d := modeltest.Drawn{Net: name, Substrate: tt.substrate}
			for i := range r.Payloads["subsets"] {
				d.Add(t, r.Payloads["segments"][i], r.Payloads["subsets"][i])
			}
			key := name + " " + tt.name
			if drawn[key] = d; *drawnFile != "" {
				continue
			}
			want := file.Cases[key]
			if len(want.Rows) != len(d.Rows) || len(want.Values) != len(d.Rows) {
				t.Fatalf("%s has %d images", key, len(want.Values))
			}
			for port, to := range map[string]string{"subsets": "subsets", "responses": "responses",
				"segments": "units"} {
				in[to] = []stages.Data{stagetest.Items(r.Facts[port], r.Payloads[port]...)}
			}
			delete(in, "segments")
			got := stagetest.Run(t, tt.stage, tt.params, in)
			for i, rows := range d.Rows {
				if !slices.Equal(rows, want.Rows[i]) {
					t.Fatalf("%s: image %d has other subsets than testdata/segments.json: make it again", key,
						i)
				}
				at, units := key+", image "+string(rune('0'+i)), r.Payloads["segments"][i]
				close64(t, at, unitValues(t, got.Payloads["maps"][i], units), want.Values[i], tt.tolerance)
				if strings.HasPrefix(tt.name, "lime") {
					fit, err := stages.ScalarOf(got.Payloads["fit"][i])
					flat := want.Fits[i] == 0 && math.IsNaN(fit) // nothing changes: lime has 0
					if err != nil || flat != (i == 2) || !flat && !(math.Abs(fit-want.Fits[i]) <= 1e-5) {
						t.Errorf("%s: the fit is %v, %v, want %v", at, fit, err, want.Fits[i])
					}
				}
			}
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
}

package score

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/stagetest"
)

// A peerCase is what testdata/subsets.py has of a metric of Quantus 0.6.0 or captum 0.9.0, a row an image.
type peerCase struct {
	Scores      []float64
	Units       [][]uint32
	Subsets     [][][]int
	Image       []float64
	Rows        [][]float64
	Differences [][]float32
	Repeats     int
}

func peerCases(t *testing.T) (maps [][]float64, cases map[string]peerCase) {
	t.Helper()
	b, err := os.ReadFile("testdata/subsets.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Maps  [][]float64
		Cases map[string]peerCase
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Maps, file.Cases
}

func (c peerCase) images() (images []replacing) {
	for i, units := range c.Units {
		images = append(images, replacing{units, c.Subsets[i], c.Image[i], c.Rows[i]})
	}
	return images
}

// scores returns ours of the subsets and responses of a case.
func (c peerCase) scores(t *testing.T, s stages.Stage, params any, port, draw string,
	maps [][]float64) []float64 {
	t.Helper()
	f := drawnBy(draw)
	if c.Repeats == 5 {
		f["repeats"] = "5"
	}
	in := subsetData(f, c.images(), maps)
	if c.Differences != nil {
		var d, a [][]byte
		for i, v := range c.Differences {
			draws := len(v) / len(maps[i])
			shape := []int{draws, 1, 1, len(maps[i])}
			if draws == 1 {
				shape = shape[1:]
			}
			d = append(d, stages.NewTensor(v, shape...).Encode())
			a = append(a, stages.NewTensor(maps[i], 1, 1, len(maps[i])).Encode())
		}
		in["differences"] = []stages.Data{stagetest.Items(stages.Facts{"draws": f["repeats"]}, d...)}
		in["maps"] = []stages.Data{stagetest.Items(nil, a...)}
	}
	return scalars(t, stagetest.Items(nil, stagetest.Run(t, s, params, in).Payloads[port]...))
}

// TestPeersSubsets compares scores with those of Quantus and captum on the subsets and responses of theirs.
func TestPeersSubsets(t *testing.T) {
	logit := SubsetParams{"logit", metric.Signed}
	size := SubsetParams{"logit", metric.Magnitude}
	maps, cases := peerCases(t)
	for _, tt := range []struct {
		name   string
		stage  stages.Stage
		params any
		port   string
		draw   string
	}{
		{"faithfulness correlation", FaithfulnessCorrelation, nil, "scores", "fixed"},
		{"faithfulness estimate 1", FaithfulnessEstimate, nil, "scores", "single"},
		{"faithfulness estimate 3", FaithfulnessEstimate, nil, "scores", "single"}, // on units of each map
		{"monotonicity correlation", MonotonicityCorrelation, nil, "scores", "single"},
		{"non-sensitivity", NonSensitivity, &NonSensitivityParams{size, 1e-5}, "count", "single"},
		{"infidelity", Infidelity, &InfidelityParams{"logit", "gradient"}, "scores", "fixed"},
		{"captum infidelity", Infidelity, &InfidelityParams{"logit", "gradient"}, "scores", "single"},
		{"captum infidelity, noise", Infidelity, &InfidelityParams{"logit", "gradient"}, "scores", "fixed"},
		{"captum infidelity, normalize", Infidelity, &InfidelityParams{"logit", "gradient"}, "scaled",
			"single"},
	} {
		c := cases[tt.name]
		if len(c.Scores) != 4 {
			t.Fatalf("%s: %d scores", tt.name, len(c.Scores))
		}
		for i, got := range c.scores(t, tt.stage, tt.params, tt.port, tt.draw, maps) {
			tolerance := 1e-12
			if c.Differences != nil {
				tolerance = 1e-5 // they are float32
			}
			if !(math.Abs(got-c.Scores[i]) <= tolerance) {
				t.Errorf("%s: image %d has %v, in the library %v", tt.name, i, got, c.Scores[i])
			}
		}
	}

	// Quantus with abs=False: negative relevance is below ε, whatever its magnitude.
	c := cases["non-sensitivity, signed"]
	for i, got := range c.scores(t, NonSensitivity, &NonSensitivityParams{logit, 1e-5}, "count", "single",
		maps) {
		theirs := 0.0
		for k, v := range maps[i] {
			if (v < 1e-5) != (math.Abs(c.Rows[i][k]-c.Image[i]) < 1e-5) {
				theirs++
			}
		}
		if want := cases["non-sensitivity"].Scores[i]; theirs != c.Scores[i] || got != want || theirs <= got {
			t.Errorf("signed map %d: %v, want %v; Quantus has %v, explained %v", i, got, want, c.Scores[i],
				theirs)
		}
	}
}

// TestPeersInfidelitySquares: Quantus leaves the squares before replaced. TestPeersSubsets has our numbers of
// both: of squares one at a time they are captum's.
func TestPeersInfidelitySquares(t *testing.T) {
	_, cases := peerCases(t)
	quantus, captum := cases["infidelity"], cases["captum infidelity"]
	for i, theirs := range quantus.Scores {
		if !(math.Abs(theirs-captum.Scores[i]) >= 0.1) {
			t.Errorf("image %d: Quantus has %v of squares that stay replaced, captum of single ones too", i,
				theirs)
		}
		for k, set := range quantus.Subsets[i] {
			if len(set) != k+1 || quantus.Image[i] != captum.Image[i] ||
				(quantus.Rows[i][k] == captum.Rows[i][k]) != (k == 0) {
				t.Errorf("image %d: step %d isn't of %d squares", i, k, k+1)
			}
		}
	}
}

// TestPeersSensitivityN: Quantus correlates over the images of a batch, and the drop of all steps so far with
// the relevance of the last step alone; ours has a correlation an image.
func TestPeersSensitivityN(t *testing.T) {
	maps, cases := peerCases(t)
	c := cases["sensitivity-n"]
	for step, theirs := range c.Scores {
		var relevance, drops []float64
		for i := range maps {
			sum := 0.0
			for k, unit := range c.Units[i] {
				if int(unit) == step {
					sum += maps[i][k]
				}
			}
			relevance, drops = append(relevance, sum), append(drops, c.Image[i]-c.Rows[i][step])
		}
		if got := stat.Pearson(drops, relevance); !(math.Abs(got-theirs) <= 1e-12) {
			t.Errorf("step %d: %v isn't Quantus' %v", step, got, theirs)
		}
	}
	if len(c.Scores) != 6 { // of 8
		t.Errorf("%d steps up to 0.8 of the pixels", len(c.Scores))
	}
	f := cases["faithfulness correlation"] // subsets of five pixels
	of := drawnBy("fixed")
	for i, got := range scalars(t, stagetest.Items(nil, stagetest.Run(t, SensitivityN, nil,
		subsetData(of, f.images(), maps)).Payloads["scores"]...)) {
		if !(math.Abs(got-f.Scores[i]) <= 1e-12) {
			t.Errorf("image %d has %v at five pixels, and a correlation of %v", i, got, f.Scores[i])
		}
	}
}

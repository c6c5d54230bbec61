package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// agreed scores two maps of height×width pixels.
func agreed(t *testing.T, s stages.Stage, params any, height, width int, x, y []float64) float64 {
	t.Helper()
	item := func(v []float64) []stages.Data {
		return []stages.Data{stagetest.Items(nil, stages.NewTensor(v, height, width).Encode())}
	}
	r := stagetest.Run(t, s, params, map[string][]stages.Data{"maps": item(x), "other": item(y)})
	return scalars(t, stagetest.Items(nil, r.Payloads["scores"]...))[0]
}

// drawnPair returns the two maps of 14×13 pixels that the numbers of scikit-image and SciPy are of.
func drawnPair() (x, y []float64) {
	for i := range 14 * 13 {
		v := float64(i*7919%101)/101 - 0.4
		x, y = append(x, v), append(y, float64(i*6101%97)/97-0.3+0.5*v)
	}
	return x, y
}

// TestAgreementOfLibraries holds the two metrics against SciPy's spearmanr and scikit-image 0.26's
// structural_similarity of these maps, normalised there.
func TestAgreementOfLibraries(t *testing.T) {
	x, y := drawnPair()
	signed := AgreementParams{"signed", "lower"}
	uniform := SSIMParams{AgreementParams{"magnitude", "lower"}, "max-abs", "uniform", 7, 1.5, "sample",
		0.01, 0.03}
	ofSigned, stretched := uniform, uniform
	ofSigned.Values = "signed"
	stretched.Values, stretched.Normalise, stretched.Size = "signed", "min-max", 9
	for _, c := range []struct {
		name   string
		stage  stages.Stage
		params any
		want   float64
	}{
		{"spearmanr of magnitudes", RankCorrelation, nil, 0.16811744526024047},
		{"spearmanr", RankCorrelation, &RankCorrelationParams{signed}, 0.4239852973090694},
		{"gaussian window of magnitudes", SSIM, nil, 0.16989204170827246},
		{"uniform window", SSIM, &ofSigned, 0.37503500509563636},
		{"uniform window of 9, min-max", SSIM, &stretched, 0.42089124267366795},
	} {
		if got := agreed(t, c.stage, c.params, 14, 13, x, y); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAgreementByHand has maps of 3×3 pixels scored by hand, and the best, the worst and undefined scores.
func TestAgreementByHand(t *testing.T) {
	up := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	down := []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}
	swapped := []float64{1, 2, 3, 4, 5, 6, 7, 9, 8}
	ones, zeros := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}, make([]float64, 9)
	small := &SSIMParams{AgreementParams{"magnitude", "lower"}, "min-max", "uniform", 3, 1.5, "population",
		0.01, 0.03}
	magnitude := *small
	magnitude.Normalise = "max-abs"
	// Of up and down stretched to [0,1]: means ½, variances 5/48, covariance −5/48.
	c1, c2 := 1e-4, 9e-4
	opposite := (0.5 + c1) / (0.5 + c1) * (-2*5./48 + c2) / (2*5./48 + c2)
	for _, c := range []struct {
		name   string
		stage  stages.Stage
		params any
		x, y   []float64
		want   float64
	}{
		{"ρ of equal maps", RankCorrelation, nil, up, up, 1},
		{"ρ of opposite maps", RankCorrelation, nil, up, down, -1},
		{"ρ, one pair swapped", RankCorrelation, nil, up, swapped, 1 - 6*2./(9*80)},
		{"ρ of a constant map", RankCorrelation, nil, up, ones, math.NaN()},
		{"SSIM of equal maps", SSIM, small, up, up, 1},
		{"SSIM of opposite maps", SSIM, small, up, down, opposite},
		{"SSIM of a constant map, min-max", SSIM, small, up, ones, math.NaN()},
		{"SSIM of constant maps", SSIM, &magnitude, ones, ones, 1},
		{"SSIM of a map of zeros", SSIM, &magnitude, zeros, ones, math.NaN()},
	} {
		got := agreed(t, c.stage, c.params, 3, 3, c.x, c.y)
		if !(math.Abs(got-c.want) <= 1e-12) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	item := stagetest.Items(nil, stages.NewTensor(up, 3, 3).Encode())
	in := map[string][]stages.Data{"maps": {item}, "other": {item}}
	if _, err := stagetest.Try(SSIM, nil, in); err == nil {
		t.Error("a window of 11 pixels fits into maps of 3×3")
	}
}

// TestAgreementOfRandomMaps holds that independent random maps have a rank correlation of 0 within three
// standard errors.
func TestAgreementOfRandomMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n, maps = 20 * 20, 50
	sum := 0.0
	for range maps {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = rng.Float64(), rng.Float64()
		}
		sum += agreed(t, RankCorrelation, nil, 20, 20, x, y)
	}
	if bound := 3 / math.Sqrt(maps*(n-1)); math.Abs(sum/maps) > bound {
		t.Errorf("a mean of %v, beyond ±%v", sum/maps, bound)
	}
}

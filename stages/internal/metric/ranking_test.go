package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// TestGoldenRanking compares with scikit-learn 1.9.1, Quantus 0.6.0, and the effective heat ratio written
// from its definition with NumPy 2.3.5. Quantus takes the top pixels of equal value from an unstable sort,
// here the mean over all choices counts: compared is where no pixels tie for the last place.
func TestGoldenRanking(t *testing.T) {
	const k = 5
	tied := 0
	for _, c := range peerCases(t) {
		n, area, positive := float64(len(c.values)), float64(MaskArea(c.mask)), positives(c.values)
		ap, _ := AveragePrecision(c.values, c.mask)
		byPixels, _ := HeatRatio(positive, c.mask, 0.1, 11, false)
		byRelevance, _ := HeatRatio(positive, c.mask, 0.1, 11, true)
		x := map[string][2]float64{
			"roc_auc_score":            {ROCAUC(c.values, c.mask), c.numbers[sklearnAUC]},
			"AUC":                      {ROCAUC(c.values, c.mask), c.numbers[quantusAUC]},
			"average_precision_score":  {ap, c.numbers[sklearnAP]},
			"heat ratio":               {byPixels, c.numbers[heatByPixels]},
			"heat ratio, by relevance": {byRelevance, c.numbers[heatByRelevance]},
			// Quantus adds 1e-9 to the sum of a map whose largest magnitude is 1.
			"AttributionLocalisation": {MassAccuracy(positive, c.mask), c.numbers[quantusLocalisation]},
		}
		if top := TopOf(c.values, c.mask, k); top.Drawn == top.Tied {
			x["TopKIntersection"] = [2]float64{top.Hits() / k, c.numbers[quantusTopK]}
			x["concept influence"] = [2]float64{top.Hits() / k * n / area, c.numbers[quantusInfluence]}
		} else {
			tied++
		}
		for what, x := range x {
			if c.name == "constant" && math.IsNaN(x[1]) {
				continue // Quantus refuses it
			}
			if !near(x[0], x[1], 1e-9) {
				t.Errorf("%s, %s: %v, want %v", c.name, what, x[0], x[1])
			}
		}
	}
	if tied > 12 {
		t.Errorf("in %d cases pixels tie", tied)
	}
}

// TestQuantusWeightedLocalisationDiffers checks why Quantus 0.6.0 has other weights: they are the object's
// pixels by those of the batch's images from the third on, together, where Kohlbrenner et al. have the
// image's by the object's.
func TestQuantusWeightedLocalisationDiffers(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/compactness.npz")
	var mask []uint8
	for _, v := range arrays["defects.mask"].Int64s() {
		mask = append(mask, uint8(v))
	}
	maps := arrays["defects.map"].Float64s()
	for i, theirs := range arrays["defects.weighted"].Float64s() {
		ratio := MassAccuracy(positives(maps[i*64:(i+1)*64]), mask)
		if want := ratio * 4 / (2 * 64); !near(theirs, want, 1e-9) {
			t.Errorf("map %d: Quantus has %v, not %v", i, theirs, want)
		}
		if ours := ratio * 64 / 4; near(ours, theirs, 0.9) && ratio > 0 {
			t.Errorf("map %d: ours is %v, theirs %v", i, ours, theirs)
		}
	}
}

// TestRankingByHand checks cases computed by hand.
func TestRankingByHand(t *testing.T) {
	mask := []uint8{1, 0, 1, 0, 0}
	ap := func(v ...float64) float64 { x, _ := AveragePrecision(v, mask); return x }
	chance := func(v ...float64) float64 { _, x := AveragePrecision(v, mask); return x }
	heat := func(ofRelevance bool, v ...float64) float64 {
		x, _ := HeatRatio(v, mask, 0.1, 3, ofRelevance)
		return x
	}
	heatFrom := func(base float64, v ...float64) float64 {
		x, _ := HeatRatio(v, mask, base, 3, false)
		return x
	}
	for _, tt := range []struct {
		what      string
		got, want float64
	}{
		{"the best map", ROCAUC([]float64{9, 1, 8, 2, 3}, mask), 1},
		{"the worst map", ROCAUC([]float64{1, 7, 2, 8, 9}, mask), 0},
		{"a constant map", ROCAUC([]float64{3, 3, 3, 3, 3}, mask), 0.5},
		// Of six pairs, 5 > 4, 5 > 2, 5 > 2, 2 > none, two ties.
		{"ties", ROCAUC([]float64{5, 4, 2, 2, 2}, mask), 4. / 6},
		{"the best map's precision", ap(9, 1, 8, 2, 3), 1},
		{"the worst map's precision", ap(1, 7, 2, 8, 9), 0.5*1/4 + 0.5*2/5},
		{"a constant map's precision", ap(3, 3, 3, 3, 3), 2. / 5},
		{"precision with ties", ap(5, 4, 2, 2, 2), 0.5*1 + 0.5*2/5},
		{"a constant map's chance", chance(3, 3, 3, 3, 3), 2. / 5},
		// At each of five places 1/5 of (1 + (k−1)/4)/k.
		{"a strict order's chance", chance(5, 4, 3, 2, 1), (1 + 1.25/2 + 1.5/3 + 1.75/4 + 2./5) / 5},
		// Of 1, ½ and ¼ at thresholds ¼, ½ and 0.99: of 3, 2 and 1 pixels relevance 1.25, 1 and 1 is inside.
		{"heat", heat(false, 4, 2, 1, 0, 0), (1.25/3 + 2*0.5 + 1) / 4},
		{"heat by relevance", heat(true, 4, 2, 1, 0, 0), (1.25/1.75 + 2/1.5 + 1) / 4},
		// ¼ reaches a base of ¼, and ½ is the median then.
		{"heat from a value on", heatFrom(0.25, 4, 2, 1, 0, 0), (1.25/3 + 2*0.5 + 1) / 4},
		// 0.995 and 1 reach thresholds of at most 0.99: one of them is inside.
		{"heat of nearly equal values", heat(false, 200, 199, 0, 0, 0), 0.5},
		{"heat of the mask", heat(false, 3, 0, 3, 0, 0), 1},
		{"heat off it", heat(false, 0, 3, 0, 0, 0), 0},
	} {
		if !near(tt.got, tt.want, 1e-15) {
			t.Errorf("%s: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

// TestRankingLaws checks on random maps with ties that any function that rises with the values leaves the
// scores as they are, that pixels can be permuted with their mask, that a negated map has the complementary
// area, and that the area is the share of pairs, counted one by one.
func TestRankingLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 4))
	for range 300 {
		n := 2 + r.IntN(30)
		values, mask := make([]float64, n), make([]uint8, n)
		for i := range values {
			values[i], mask[i] = float64(r.IntN(12)-6), uint8(r.IntN(2))
		}
		mask[0], mask[1] = 1, 0
		rising, negated := make([]float64, n), make([]float64, n)
		for i, v := range values {
			rising[i], negated[i] = math.Exp(v)*3-2, -v
		}
		auc := ROCAUC(values, mask)
		ap, chance := AveragePrecision(values, mask)
		if x := ROCAUC(rising, mask); x != auc {
			t.Errorf("area %v, after exp %v", auc, x)
		}
		if x, c := AveragePrecision(rising, mask); x != ap || c != chance {
			t.Errorf("precision %v by chance %v, after exp %v by %v", ap, chance, x, c)
		}
		if x := ROCAUC(negated, mask); !near(x, 1-auc, 1e-14) {
			t.Errorf("area %v, negated %v", auc, x)
		}
		pairs, won := 0.0, 0.0
		for i, v := range values {
			for k, w := range values {
				if mask[i] == 1 && mask[k] == 0 {
					pairs++
					switch {
					case v > w:
						won++
					case v == w:
						won += 0.5
					}
				}
			}
		}
		if !near(auc, won/pairs, 1e-14) {
			t.Errorf("area %v, and %v of %v pairs", auc, won, pairs)
		}
		heat, heatChance := HeatRatio(magnitudes(values), mask, 0.1, 11, false)
		order := r.Perm(n)
		shuffled, moved := make([]float64, n), make([]uint8, n)
		for i, k := range order {
			shuffled[i], moved[i] = values[k], mask[k]
		}
		apMoved, _ := AveragePrecision(shuffled, moved)
		heatMoved, _ := HeatRatio(magnitudes(shuffled), moved, 0.1, 11, false)
		if ROCAUC(shuffled, moved) != auc || apMoved != ap || slices.Max(values) != slices.Min(values) &&
			!near(heatMoved, heat, 1e-12) {
			t.Errorf("permuted pixels change the scores: %v to %v", ap, apMoved)
		}
		if heat < 0 || heat > 1+1e-12 || heatChance > 1+1e-12 {
			t.Errorf("heat ratio %v by chance %v", heat, heatChance)
		}
	}
}

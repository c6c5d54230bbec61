package score

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// TruthParams are the parameters of [Truth].
type TruthParams struct {
	Values string `yaml:"values" doc:"the relevance of a pixel or segment: the sum over channels, or that sum's magnitude, in both maps; sign reads signs in any case" choices:"signed|magnitude"`
}

// Truth compares a map with the true attribution, as is known of a synthetic net: Lee et al., "XAI-Units:
// Benchmarking Explainability Methods with Unit Tests", 2025, take the squared error.
var Truth = stages.New(stages.Def[TruthParams]{
	Name: "score/truth",
	Doc: `agreement of a map with the true attribution

Of all pixels or, with segments, of all segments, whose pixels are added up: the cosine
between the two maps, the share of those with a true attribution that have its sign,
Spearman's ρ, and the length of the difference divided by that of the truth. Only the
last sees the map's scale: the least error of any multiple of the map is
√(1 − cosine²). Lee et al. 2025 (XAI-Units); Spearman 1904.`,
	Definition: stages.Definition{
		Formula: "cosine: Σ aᵢtᵢ/(‖a‖·‖t‖). sign: the share of all i with tᵢ ≠ 0 where aᵢ·tᵢ > 0. rank: " +
			"Spearman's ρ of a and t, equal values sharing the mean of their ranks. error: ‖a − t‖/‖t‖",
		Unit:     "a pixel, or with segments a segment, as the sum of its pixels",
		Operator: "none",
		Response: "the method's map a; values of less than 10⁻⁶ of its largest magnitude have no sign, and " +
			"values that differ by less have equal ranks",
		Reference:   "the true attribution t",
		Aggregation: "one number of each kind over all pixels or segments",
		Randomness:  "none",
		Undefined: "where map or truth has a value that isn't finite, and where the truth is 0 everywhere; " +
			"cosine also for a map of zeros, and rank for a constant map or truth",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "truth", Type: stages.Maps, Doc: "the true attributions"},
		{Name: "segments", Type: stages.Segments, Doc: "what is compared in place of pixels", Optional: true},
	},
	Outputs: []stages.Port{
		{Name: "cosine", Type: stages.Scores, Doc: "the cosine, in [−1,1]"},
		{Name: "sign", Type: stages.Scores, Doc: "the share of right signs"},
		{Name: "rank", Type: stages.Scores, Doc: "Spearman's ρ, in [−1,1]"},
		{Name: "error", Type: stages.Scores, Doc: "the relative error"},
	},
	Defaults: TruthParams{Values: metric.Signed},
	Facts: func(TruthParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Higher, Low: -1, High: 1, Tolerance: 2e-3}
		rank, sign, far := m, m, m
		rank.ItemTolerance = orderJump
		sign.Unit, sign.Low, sign.ItemTolerance = "share", 0, orderJump
		far.Direction, far.Low, far.High = stages.Lower, 0, math.Inf(1)
		return map[string]stages.Facts{"cosine": m.Facts(nil), "sign": sign.Facts(nil),
			"rank": rank.Facts(nil), "error": far.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p TruthParams, e *stages.Env) error {
		for i := range e.Len() {
			a, t, err := mapAndTruth(e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			s := agreementOf(a, t, p.Values == metric.Magnitude)
			e.Put("cosine", i, stages.Scalar(s.cosine))
			e.Put("sign", i, stages.Scalar(s.sign))
			e.Put("rank", i, stages.Scalar(s.rank))
			e.Put("error", i, stages.Scalar(s.err))
			e.Done(1)
		}
		return nil
	},
})

// mapAndTruth returns the values of an item's map and of its true attribution, by pixel or by segment.
func mapAndTruth(e *stages.Env, i int) (a, t []float64, err error) {
	var v [2][]float64
	var size [2][2]int
	for k, port := range []string{"maps", "truth"} {
		x, err := stages.DecodeTensor(e.In(port, i))
		if err == nil {
			v[k], size[k][0], size[k][1], err = metric.Values(x, metric.Signed)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("port %s: %w", port, err)
		}
	}
	if size[0] != size[1] {
		return nil, nil, fmt.Errorf("a map of %d×%d pixels can't be compared with a truth of %d×%d",
			size[0][0], size[0][1], size[1][0], size[1][1])
	}
	if e.In("segments", i) == nil {
		return v[0], v[1], nil
	}
	segments, err := stages.DecodeTensor(e.In("segments", i))
	if err == nil && !slices.Equal(segments.Shape, size[0][:]) {
		err = errors.New("they don't have the size of the map")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("port segments: %w", err)
	}
	numbers := segments.Float64s()
	return sums(v[0], numbers), sums(v[1], numbers), nil
}

// sums returns the sum of the values of each segment, in the order of the segments' numbers.
func sums(values, segments []float64) []float64 {
	numbers := slices.Compact(slices.Sorted(slices.Values(segments)))
	out := make([]float64, len(numbers))
	for i, v := range values {
		k, _ := slices.BinarySearch(numbers, segments[i])
		out[k] += v
	}
	return out
}

// A truthScore is what agrees of a map and the truth.
type truthScore struct{ cosine, sign, rank, err float64 }

// negligible is the share of the largest magnitude below which a map's value is rounding.
const negligible = 1e-6

// agreementOf compares a map with the truth, value by value.
func agreementOf(a, t []float64, magnitudes bool) truthScore {
	undefined := math.NaN()
	s := truthScore{undefined, undefined, undefined, undefined}
	if !metric.Defined(a) || !metric.Defined(t) {
		return s
	}
	largest := 0.0
	for _, v := range a {
		largest = max(largest, math.Abs(v))
	}
	signs, right := 0, 0
	for i := range t {
		if t[i] == 0 {
			continue
		}
		signs++
		if math.Abs(a[i]) > negligible*largest && (a[i] > 0) == (t[i] > 0) {
			right++
		}
	}
	if signs == 0 {
		return s
	}
	s.sign = float64(right) / float64(signs)
	if magnitudes {
		a, t = absolute(a), absolute(t)
	}
	var both, aa, tt, far float64
	for i := range a {
		x := a[i] / largest // whose square is neither infinite nor 0
		both += float64(x * t[i])
		aa += float64(x * x)
		tt += float64(t[i] * t[i])
		far += float64((a[i] - t[i]) * (a[i] - t[i]))
	}
	s.err = math.Sqrt(far / tt)
	if largest > 0 {
		s.cosine = max(-1, min(both/math.Sqrt(aa)/math.Sqrt(tt), 1))
		s.rank = stat.Spearman(stat.Tied(a, negligible*largest), t)
	}
	return s
}

func absolute(x []float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] = math.Abs(out[i])
	}
	return out
}

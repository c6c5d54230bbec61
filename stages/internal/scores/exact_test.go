package scores

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

// seedsOf returns the scores of some items, by seed.
func seedsOf(values [][]float64, items []int) (data []stages.Data) {
	ids := make([]string, len(items))
	for k, i := range items {
		ids[k] = fmt.Sprint("item ", i)
	}
	for seed, v := range values {
		some := make([]float64, len(items))
		for k, i := range items {
			some[k] = v[i]
		}
		d := port(ids, some)
		d.Coord = []stages.Coord{{Axis: "method", ID: "ig"}}
		d.Replicate = []stages.Coord{{Axis: "run", ID: fmt.Sprint(seed)}}
		d.Facts = stages.Facts{"direction": string(stages.Higher)}
		data = append(data, d)
	}
	return data
}

// exactCell loads cheap scores of all items, and exact ones of a pilot and a second phase.
func exactCell(t *testing.T, cheap, exact [][]float64, pilot, second []int) *Cell {
	t.Helper()
	all := make([]int, len(cheap[0]))
	for i := range all {
		all[i] = i
	}
	cells, err := Load(context.Background(), seedsOf(cheap, all))
	if err == nil {
		err = AddExact(context.Background(), []*Cell{&cells[0]}, seedsOf(exact, pilot),
			seedsOf(exact, second))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &cells[0]
}

// TestExactSeeds enumerates the second phases of a few items: the mean of the estimates is that of the exact
// means over seeds, and that of the variances over seeds is the variance of the exact means of all items.
func TestExactSeeds(t *testing.T) {
	x := [][]float64{{1, 2, 4, 8, 16, 5, 0}, {0, 1, 1, 2, 3, 5, 8}, {2, 7, 1, 8, 2, 8, 1}}
	y := [][]float64{{9, 1, 0, 7, 20, 4, -30}, {3, 1, 4, 1, 5, 9, 2}, {1, 1, 2, 3, 5, 8, 13}}
	truth, means := 0.0, []float64{0, 0, 0}
	for k := range y {
		for _, v := range y[k] {
			means[k] += v / 7
		}
		truth += means[k] / 3
	}
	pilot, estimates, variances := []int{2, 5}, []float64(nil), []float64(nil)
	for chosen := range 1 << 7 {
		var second []int
		for i := range 7 {
			if chosen>>i&1 == 1 {
				second = append(second, i)
			}
		}
		if len(second) == 3 && !slices.Contains(second, 2) && !slices.Contains(second, 5) {
			c := exactCell(t, x, y, pilot, second)
			estimates = append(estimates, c.Sample().Estimate())
			variances = append(variances, c.exactVariance())
		}
	}
	mean, _, _ := interval.Mean(estimates)
	if math.Abs(mean-truth) > 1e-12 {
		t.Errorf("the estimate is %v on average, want %v", mean, truth)
	}
	if mean, _, _ := interval.Mean(variances); math.Abs(mean-variance(means)) > 1e-12 {
		t.Errorf("the variance over seeds is %v on average, want %v", mean, variance(means))
	}
	// Of all items it is that of exact scores alone.
	c, want := exactCell(t, x, y, pilot, []int{0, 1, 3, 4, 6}), math.Sqrt(variance(means))
	if got := c.SD(nil); math.Abs(got-want) > 1e-12 {
		t.Errorf("of all exact scores the deviation over seeds is %v, want %v", got, want)
	}
}

// An item that some seed leaves undefined is so in its own precision.
func TestExactSeedsUndefined(t *testing.T) {
	nan := math.NaN()
	x := [][]float64{{1, 2, nan, 4, 5, 6}, {2, 3, 4, 5, 6, 7}}
	y := [][]float64{{2, nan, 3, 5, 6, 7}, {3, 3, 5, 6, 9, 8}}
	c := exactCell(t, x, y, []int{0, 1}, []int{2, 3, 4})
	// By hand: pilot 2.5 and none; the others x are none, 4.5, 5.5, 6.5; y of the second phase 4, 5.5, 7.5.
	sum, count := 2.5+(4.5+5.5+6.5)+4./3*(4+(5.5-4.5)+(7.5-5.5)), 1+3+4./3*1
	if got := c.Sample().Estimate(); math.Abs(got-sum/count) > 1e-12 {
		t.Errorf("the estimate is %v, want %v", got, sum/count)
	}
	if sd := c.SD(nil); math.IsNaN(sd) {
		t.Errorf("the deviation over seeds is %v", sd)
	}
}

func TestExactSeedsRefuse(t *testing.T) {
	x := [][]float64{{1, 2, 3, 4}, {2, 3, 4, 6}}
	load := func(second []stages.Data) error {
		cells, err := Load(context.Background(), seedsOf(x, []int{0, 1, 2, 3}))
		if err != nil {
			t.Fatal(err)
		}
		return AddExact(context.Background(), []*Cell{&cells[0]}, seedsOf(x, []int{0}), second)
	}
	uneven := append(seedsOf(x[:1], []int{1, 2}), seedsOf(x[1:], []int{2, 3})...)
	uneven[1].Replicate[0].ID = "1"
	if err := load(uneven); err == nil || !strings.Contains(err.Error(), "different images") {
		t.Errorf("other items of each seed: %v", err)
	}
	three := seedsOf([][]float64{{1, 2, 3, 4}, {2, 3, 4, 6}, {4, 4, 4, 4}}, []int{1, 2})
	if err := load(three); err == nil || !strings.Contains(err.Error(), "2 seeds, and exact ones of 3") {
		t.Errorf("other seeds: %v", err)
	}
}

// errorLaws are laws of cheap minus exact scores.
var errorLaws = map[string]func(r *rand.Rand, y float64) float64{
	"a constant":    func(*rand.Rand, float64) float64 { return 0.3 },
	"in proportion": func(r *rand.Rand, y float64) float64 { return 0.3 * y * r.NormFloat64() },
	"Student's t of 2 degrees": func(r *rand.Rand, _ float64) float64 {
		return 0.1 * r.NormFloat64() / math.Sqrt(r.ExpFloat64())
	},
	"correlated": func(r *rand.Rand, y float64) float64 { return -0.3*y + 0.05*r.NormFloat64() },
}

// covers simulates experiments of one law whose true mean is 0: how many of 100 intervals of exact scores of
// all items hold it, and how many of estimates.
func covers(t *testing.T, experiments int, one func(r *rand.Rand, law func(*rand.Rand, float64) float64) (
	exact []float64, c *Cell)) {
	t.Helper()
	for name, law := range errorLaws {
		r, full, sampled := rand.New(rand.NewPCG(4, 5)), 0, 0
		for range experiments {
			exact, c := one(r, law)
			if _, low, high := interval.Mean(exact); low <= 0 && 0 <= high {
				full++
			}
			if _, low, high := c.Sample().Mean(); low <= 0 && 0 <= high {
				sampled++
			}
		}
		a, b := 100*float64(full)/float64(experiments), 100*float64(sampled)/float64(experiments)
		text := fmt.Sprintf("%s: %.1f of 100 hold the mean, of exact scores %.1f", name, b, a)
		t.Log(text)
		if math.Abs(a-b) > 2 {
			t.Error(text)
		}
	}
}

// TestExactSeedsCoverage simulates scores of three seeds: intervals of estimates hold the mean as often as
// those of exact scores of all items, within two of 100, whatever the error.
func TestExactSeedsCoverage(t *testing.T) {
	const items, seeds = 150, 3
	covers(t, 400, func(r *rand.Rand, law func(*rand.Rand, float64) float64) ([]float64, *Cell) {
		x, y := make([][]float64, seeds), make([][]float64, seeds)
		whole := make([]float64, items)
		for i := range whole {
			of := r.ExpFloat64() - 1 // the image
			for k := range y {
				v := of + 0.5*r.NormFloat64()
				y[k], x[k] = append(y[k], v), append(x[k], v+law(r, v)*float64(k+1))
				whole[i] += v / seeds
			}
		}
		order := r.Perm(items)
		return whole, exactCell(t, x, y, order[:24], order[24:60])
	})
}

// partOf loads the cell of the first items of a group, with the exact scores that were drawn of all items.
func partOf(t *testing.T, x, y []float64, group int, pilot, second []int) *Cell {
	t.Helper()
	all := make([]int, group)
	for i := range all {
		all[i] = i
	}
	part := seedsOf([][]float64{x}, all)
	part[0].Coord = []stages.Coord{{Axis: "domain", ID: "a"}, part[0].Coord[0]}
	cells, err := Load(context.Background(), part)
	if err == nil {
		err = AddExact(context.Background(), []*Cell{&cells[0]}, seedsOf([][]float64{y}, pilot),
			seedsOf([][]float64{y}, second), "domain")
	}
	if err != nil {
		t.Fatal(err)
	}
	return &cells[0]
}

// TestExactPart enumerates the second phases of a few items: of those with so many items of a part the
// estimates are its exact mean on average, whose number the draw decides.
func TestExactPart(t *testing.T) {
	x, y := []float64{1, 2, 4, 8, 16, 5, 0, 3, 3}, []float64{9, 1, 0, 7, 20, 4, -30, 1, 12}
	const group = 5 // items 0 to 4, of which 2 is in the pilot
	truth := 37. / group
	by := map[int][]float64{}
	for chosen := range 1 << len(x) {
		var second []int
		in := 0
		for i := range x {
			if chosen>>i&1 == 1 {
				if second = append(second, i); i < group {
					in++
				}
			}
		}
		if len(second) == 3 && !slices.Contains(second, 2) && !slices.Contains(second, 5) {
			by[in] = append(by[in], partOf(t, x, y, group, []int{2, 5}, second).Sample().Estimate())
		}
	}
	for in, estimates := range by {
		mean, _, _ := interval.Mean(estimates)
		if in == 0 {
			if len(estimates) != 1 || !math.IsNaN(estimates[0]) {
				t.Errorf("without an item of the second phase the estimates are %v", estimates)
			}
		} else if math.Abs(mean-truth) > 1e-12 {
			t.Errorf("with %d items of the second phase the estimates' mean is %v, want %v", in, mean, truth)
		}
	}
	if len(by) != 4 {
		t.Errorf("%d numbers of items, want 4", len(by))
	}
}

// TestExactPartCoverage simulates parts of 80 of 240 items, of which the pilot says how many are measured.
func TestExactPartCoverage(t *testing.T) {
	const items, group = 240, 80
	covers(t, 600, func(r *rand.Rand, law func(*rand.Rand, float64) float64) ([]float64, *Cell) {
		x, y := make([]float64, items), make([]float64, items)
		for i := range y {
			y[i] = r.NormFloat64()
			x[i] = y[i] + law(r, y[i])
		}
		order := r.Perm(items)
		all := interval.Sample{Cheap: x, Exact: y, Phases: make([]interval.Phase, items)}
		for _, i := range order[:32] {
			all.Phases[i] = interval.Pilot
		}
		second := max(32, interval.Needed(32, items-32, all.Ratio(interval.Pilot), 0.02))
		return y[:group], partOf(t, x, y, group, order[:32], order[32:32+second])
	})
}

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
		err = AddExact(context.Background(), []*Cell{&cells[0]}, seedsOf(exact, pilot), seedsOf(exact, second))
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
	// Of all items it is what it is without cheap scores.
	c := exactCell(t, x, y, pilot, []int{0, 1, 3, 4, 6})
	if got := c.SD(nil); math.Abs(got-math.Sqrt(variance(means))) > 1e-12 {
		t.Errorf("of all exact scores the deviation over seeds is %v, want %v", got, math.Sqrt(variance(means)))
	}
}

// An item that some seed leaves undefined is so in its own precision.
func TestExactSeedsUndefined(t *testing.T) {
	nan := math.NaN()
	x, y := [][]float64{{1, 2, nan, 4, 5, 6}, {2, 3, 4, 5, 6, 7}}, [][]float64{{2, nan, 3, 5, 6, 7}, {3, 3, 5, 6, 9, 8}}
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

// TestExactSeedsCoverage simulates scores of three seeds: intervals of estimates hold the mean as often as
// those of exact scores of all items, within two of 100, whatever the error.
func TestExactSeedsCoverage(t *testing.T) {
	laws := map[string]func(r *rand.Rand, y float64) float64{
		"a constant of the seed": func(*rand.Rand, float64) float64 { return 0.3 },
		"in proportion":          func(r *rand.Rand, y float64) float64 { return 0.3 * y * r.NormFloat64() },
		"Student's t of 2 degrees": func(r *rand.Rand, _ float64) float64 {
			return 0.1 * r.NormFloat64() / math.Sqrt(r.ExpFloat64())
		},
		"correlated": func(r *rand.Rand, y float64) float64 { return -0.3*y + 0.05*r.NormFloat64() },
	}
	const experiments, items, seeds = 400, 150, 3
	for name, law := range laws {
		r, full, sampled := rand.New(rand.NewPCG(4, 5)), 0, 0
		for range experiments {
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
			if _, low, high := interval.Mean(whole); low <= 0 && 0 <= high {
				full++
			}
			c := exactCell(t, x, y, order[:24], order[24:60])
			if _, low, high := c.Sample().Mean(); low <= 0 && 0 <= high {
				sampled++
			}
		}
		a, b := 100*float64(full)/experiments, 100*float64(sampled)/experiments
		t.Logf("%s: %.1f of 100 hold the mean, of exact scores %.1f", name, b, a)
		if math.Abs(a-b) > 2 {
			t.Errorf("%s: %.1f of 100 hold the mean, of exact scores %.1f", name, b, a)
		}
	}
}

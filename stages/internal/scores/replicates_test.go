package scores

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// replicate is the scores of one method and seed on the items a, b, … .
func replicate(method string, seed int, values ...float64) stages.Data {
	ids := make([]string, len(values))
	for i := range ids {
		ids[i] = string(rune('a' + i))
	}
	d := port(ids, values)
	d.Coord = []stages.Coord{{Axis: "method", ID: method}}
	d.Replicate = []stages.Coord{{Axis: "run", ID: fmt.Sprint(seed)}}
	d.Facts = stages.Facts{"direction": string(stages.Higher)}
	return d
}

// TestReplicates averages by hand: of each item over seeds, without the items that some seed leaves undefined
// or lacks; the deviation is that of the seeds' means over the other items.
func TestReplicates(t *testing.T) {
	nan := math.NaN()
	cells, err := Load(context.Background(), []stages.Data{
		replicate("drawn", 1, 1, 2, nan, 8),
		replicate("fixed", 1, 5, nan, 7),
		replicate("drawn", 2, 3, 6, 4),
		replicate("drawn", 3, 2, 1, 9, 9, 9),
		replicate("fixed", 2, 5, nan, 7),
		replicate("alone", 1, 4),
	})
	if err != nil {
		t.Fatal(err)
	}
	mean := func(v []float64) (sum float64) {
		for _, x := range v {
			sum += x / float64(len(v))
		}
		return sum
	}
	var got []string
	for _, c := range cells {
		got = append(got, fmt.Sprint(c.Coord[0].ID, c.Scores.Values, c.Seeds(), " ", c.SD(mean)))
	}
	// drawn: a (1+3+2)/3, b (2+6+1)/3; the seeds' means over a and b are 1.5, 4.5 and 1.5, whose standard
	// deviation is √(((1)²+(2)²+(1)²)/2) = √3.
	want := []string{"drawn[2 3 NaN NaN NaN] 3 " + fmt.Sprint(math.Sqrt(3)),
		"fixed[5 NaN 7] 1 NaN", "alone[4] 1 NaN"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	other := replicate("drawn", 2, 3)
	other.Items = stages.ItemSlice{{ID: "z"}}
	if _, err := Load(context.Background(), []stages.Data{replicate("drawn", 1, 1), other}); err == nil ||
		!strings.Contains(err.Error(), "the seeds have no images in common") {
		t.Errorf("seeds without a common image: %v", err)
	}
}

// TestSeedsAreNoImages: of experiments with equal methods, whose scores differ by seed and image, at most 5 %
// and 3 standard errors find a difference, however many seeds they have. Seeds that count as images would
// find one in most of them.
func TestSeedsAreNoImages(t *testing.T) {
	const experiments, images, seeds, alpha = 400, 10, 8, 0.05
	limit := experiments*alpha + 3*math.Sqrt(experiments*alpha*(1-alpha))
	r := rand.New(rand.NewPCG(3, 5))
	inside, counted := 0, 0
	label := func(_, id string) string { return id }
	for range experiments {
		var data, naive []stages.Data
		for _, method := range []string{"p", "q"} {
			own := make([]float64, images) // the method's effect on each image
			for i := range own {
				own[i] = r.NormFloat64()
			}
			var all []float64
			for seed := range seeds {
				v := make([]float64, images)
				for i := range v {
					v[i] = own[i] + 0.1*r.NormFloat64()
				}
				data, all = append(data, replicate(method, seed, v...)), append(all, v...)
			}
			naive = append(naive, replicate(method, 0, all...))
		}
		alarm := func(data []stages.Data) (alarms, cases, n int) {
			c, err := NewContest(context.Background(), nil, label, data, "rank", "method")
			if err != nil {
				t.Fatal(err)
			}
			all, _ := c.Cases[0].Compare(0, false, false)
			if all[0].P <= alpha {
				alarms++
			}
			return alarms, len(c.Cases), all[0].N
		}
		a, cases, n := alarm(data)
		if cases != 1 || n != images {
			t.Fatalf("%d cases over %d images", cases, n)
		}
		b, _, _ := alarm(naive)
		inside, counted = inside+a, counted+b
	}
	t.Logf("of %d experiments %d, with seeds as images %d", experiments, inside, counted)
	if float64(inside) > limit || float64(counted) < 2*limit {
		t.Errorf("%d false alarms, want at most %.0f; %d with seeds as images", inside, limit, counted)
	}
}

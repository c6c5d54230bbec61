package fuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// errorLaws are laws of cheap minus exact scores, given the exact one and what the errors of an image have in
// common.
var errorLaws = map[string]func(r *rand.Rand, y, common float64) float64{
	"a constant": func(*rand.Rand, float64, float64) float64 { return 0.3 },
	"in common":  func(r *rand.Rand, _, common float64) float64 { return 0.3*common + 0.1*r.NormFloat64() },
	"Student's t of 2 degrees": func(r *rand.Rand, _, _ float64) float64 {
		return 0.15 * r.NormFloat64() / math.Sqrt(r.ExpFloat64())
	},
	"of the score": func(r *rand.Rand, y, _ float64) float64 {
		return -0.3*y + 0.2*y*r.NormFloat64()
	},
	"normal": func(r *rand.Rand, _, _ float64) float64 { return 0.3 * r.NormFloat64() },
}

// A measured contest has exact and cheap scores by case and method.
type measured struct{ exact, cheap [3][4][]float64 }

func measure(r *rand.Rand, items int, law func(r *rand.Rand, y, common float64) float64) (m measured) {
	var means [4]float64
	for p := range means {
		means[p] = 0.15 * r.NormFloat64()
	}
	for range items {
		common := r.NormFloat64()
		for k := range m.exact {
			for p := range m.exact[k] {
				y := means[p] + r.NormFloat64()
				m.exact[k][p] = append(m.exact[k][p], y)
				m.cheap[k][p] = append(m.cheap[k][p], y+law(r, y, common))
			}
		}
	}
	return m
}

// of returns the scores of some items.
func of(values [3][4][]float64, items []int) (cells []stages.Data) {
	for k := range values {
		for p, v := range values[k] {
			var some []float64
			var ids stages.ItemSlice
			for _, i := range items {
				id := fmt.Sprint("item ", i)
				some, ids = append(some, v[i]), append(ids, stages.Item{ID: id, Origin: id})
			}
			d := cell(stages.Higher, some, "method", fmt.Sprint("m", p), "net", fmt.Sprint("n", k))
			d.Items = ids
			cells = append(cells, d)
		}
	}
	return cells
}

// in are the inputs with exact scores of a pilot and a second phase, the first items of an order.
func (m measured) in(order []int, pilot, second int) map[string][]stages.Data {
	return map[string][]stages.Data{"scores": of(m.cheap, slices.Sorted(slices.Values(order))),
		"pilot": of(m.exact, order[:pilot]), "exact": of(m.exact, order[pilot:pilot+second])}
}

// With exact scores of all images both fusions say what they say of these alone.
func TestExactOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m, order := measure(r, 60, errorLaws["normal"]), r.Perm(60)
	with := params()
	with.Resamples = 300
	for _, s := range []struct {
		stage  stages.Stage
		params any
		tables []string
	}{
		{MetaRank, with, []string{"ranking", "pairs", "cases"}},
		{Rankings, &RankingsParams{with.Params}, []string{"ranking", "agreement"}},
	} {
		all := map[string][]stages.Data{"scores": of(m.exact, slices.Sorted(slices.Values(order)))}
		want := stagetest.Run(t, s.stage, s.params, all)
		got := stagetest.Run(t, s.stage, s.params, m.in(order, 20, 40))
		for _, name := range s.tables {
			if a, b := text(table(t, want, name)), text(table(t, got, name)); a != b {
				t.Errorf("%s of exact scores\n%s\nof exact ones beside cheap ones\n%s", name, a, b)
			}
		}
		const more = " All 60 images have exact scores: nothing is estimated, and exact saves nothing.\n"
		a, b := string(want.Payloads["answer"][0]), string(got.Payloads["answer"][0])
		if strings.TrimSuffix(a, "\n")+more != b {
			t.Errorf("the answers are\n%s\n%s", a, b)
		}
	}
}

// Of exact scores of some images each case has the estimates of means, by hand, and ranks by them.
func TestExactOfSome(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m, order := measure(r, 100, errorLaws["in common"]), r.Perm(100)
	cases := table(t, stagetest.Run(t, MetaRank, params(), m.in(order, 20, 30)), "cases")
	for k := range m.exact {
		var means []float64
		for p := range m.exact[k] {
			sum := 0.0
			for at, i := range order {
				x, y := m.cheap[k][p][i], m.exact[k][p][i]
				switch {
				case at < 20:
					sum += y
				case at < 50:
					sum += x + 80./30*(y-x)
				default:
					sum += x
				}
			}
			means = append(means, sum/100)
		}
		for p, want := range means {
			row := cases.Rows[4*k+p]
			rank := 1.0
			for _, other := range means {
				if other > want {
					rank++
				}
			}
			mean, place := cases.Number(row, "mean"), cases.Number(row, "rank")
			if math.Abs(mean-want) > 1e-12 || place != rank {
				t.Errorf("%v: mean %v, rank %v; want %v, %v", row.Keys, mean, place, want, rank)
			}
		}
	}
}

var stays = regexp.MustCompile(`the first place stays in (\S+) of 100, and the whole order in (\S+)\.\n`)

// The answer's shares are how often the estimated winner and order are those of exact scores of all images,
// in simulated experiments whose methods are near each other, whatever the errors.
func TestStays(t *testing.T) {
	const experiments = 100
	var said, were [2]float64 // the first place, and the order
	for name, law := range errorLaws {
		r := rand.New(rand.NewPCG(5, 6))
		var lawSaid, lawWere [2]float64
		for range experiments {
			m, order := measure(r, 150, law), r.Perm(150)
			estimated := stagetest.Run(t, MetaRank, params(), m.in(order, 30, 30))
			full := stagetest.Run(t, MetaRank, params(), map[string][]stages.Data{
				"scores": of(m.exact, slices.Sorted(slices.Values(order)))})
			found := stays.FindStringSubmatch(string(estimated.Payloads["answer"][0]))
			if found == nil {
				t.Fatalf("the answer is %s", estimated.Payloads["answer"][0])
			}
			for i := range lawSaid {
				percent, _ := strconv.ParseFloat(found[i+1], 64)
				lawSaid[i] += percent / experiments
			}
			a, b := places(table(t, estimated, "ranking")), places(table(t, full, "ranking"))
			if a[0] == b[0] {
				lawWere[0] += 100. / experiments
			}
			if slices.Equal(a, b) {
				lawWere[1] += 100. / experiments
			}
		}
		t.Logf("%s: it says %.1f of 100, and of orders %.1f; they were %.1f and %.1f", name, lawSaid[0],
			lawSaid[1], lawWere[0], lawWere[1])
		for i := range said {
			if math.Abs(lawSaid[i]-lawWere[i]) > 10 {
				t.Errorf("%s: it says %v of 100, of which %v are so", name, lawSaid, lawWere)
			}
			said[i] += lawSaid[i] / float64(len(errorLaws))
			were[i] += lawWere[i] / float64(len(errorLaws))
		}
	}
	for i := range said {
		if math.Abs(said[i]-were[i]) > 4 {
			t.Errorf("it says %v of 100, of which %v are so", said, were)
		}
	}
	if said[1] > 95 || said[0] < said[1] {
		t.Errorf("the experiments are too sure, %v", said)
	}
}

// places returns the methods with their ranks, by rank.
func places(t stages.Table) (all []string) {
	for _, row := range t.Rows {
		all = append(all, fmt.Sprint(row.Keys[0], t.Number(row, "rank")))
	}
	return all
}

// Resamples of the cases have resampled estimates: with nearly equal methods more ranks are possible.
func TestExactWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	m, order := measure(r, 100, errorLaws["normal"]), r.Perm(100)
	with := params()
	with.Resamples = 400
	for k := range m.exact { // m0 is ahead of m1 by next to nothing in each case
		for i := range m.exact[k][0] {
			m.exact[k][1][i] = m.exact[k][0][i] - 1e-3
		}
	}
	rank := func(in map[string][]stages.Data) (low, high float64) {
		t1 := table(t, stagetest.Run(t, MetaRank, with, in), "ranking")
		at := slices.IndexFunc(t1.Rows, func(r stages.Row) bool { return r.Keys[0] == "m1" })
		return t1.Number(t1.Rows[at], "rank low"), t1.Number(t1.Rows[at], "rank high")
	}
	low, high := rank(map[string][]stages.Data{"scores": of(m.exact, slices.Sorted(slices.Values(order)))})
	wideLow, wideHigh := rank(m.in(order, 20, 20))
	if !(wideLow <= low && wideHigh >= high && wideHigh-wideLow > high-low) {
		t.Errorf("of exact scores ranks %v to %v, of estimates %v to %v", low, high, wideLow, wideHigh)
	}
}

func TestExactRefuses(t *testing.T) {
	p := params()
	p.Exact = "float16"
	const want = "isn't the precision of a reference"
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("float16: %v", err)
	}
	r := rand.New(rand.NewPCG(9, 9))
	m, order := measure(r, 30, errorLaws["normal"]), r.Perm(30)
	in := m.in(order, 10, 10)
	in["exact"] = in["exact"][1:]
	if _, err := stagetest.Try(MetaRank, params(), in); err == nil ||
		!strings.Contains(err.Error(), "there are no exact scores of") {
		t.Errorf("a cell without exact scores: %v", err)
	}
}

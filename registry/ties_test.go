package registry

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
	"github.com/runexp/runexp/stages/fuse"
	"github.com/runexp/runexp/stages/report"
	"github.com/runexp/runexp/stages/stagetest"
	"github.com/runexp/runexp/stages/stats"
)

// comparisons are the stages that compare scores, with parameters for the axes method and metric.
var comparisons = []struct {
	stage  stages.Stage
	params func(p any)
}{
	{report.Leaderboard, func(p any) { p.(*report.LeaderboardParams).Claims = claimed }},
	{stats.Wilcoxon, func(p any) { q := p.(*stats.WilcoxonParams); q.Among, q.Claims = "method", claimed }},
	{report.Table, func(p any) { // medians have no intervals, which take long
		q := p.(*report.TableParams)
		q.Statistic, q.Claims = "median", claimed
	}},
	{stats.Friedman, func(p any) { p.(*stats.FriedmanParams).Rank = "method" }},
	{stats.Agreement, func(p any) { p.(*stats.AgreementParams).Rank = "method" }},
	{stats.Consistency, func(p any) {
		q := p.(*stats.ConsistencyParams)
		q.Rank, q.Claims = "method", []string{"correlation > 0.5"}
	}},
	{stats.ICR, func(p any) { q := p.(*stats.ICRParams); q.Rate, q.Between = "method", "metric" }},
	{stats.IRR, func(p any) { p.(*stats.IRRParams).Rate = "method" }},
	{stats.RankCorrelation, func(p any) { p.(*stats.RankCorrelationParams).Among = "method" }},
	{fuse.MetaRank, func(p any) {
		q := p.(*fuse.MetaRankParams)
		q.Rank, q.Resamples, q.Claims = "method", 50, []string{"ant > bee, cat", "bee < *"}
	}},
	{fuse.Rankings, func(p any) { p.(*fuse.RankingsParams).Rank = "method" }},
}

// claimed are claims about the means of [contest].
var claimed = []string{"ant > bee, cat", "bee < *", "cat beats dog", "dog beats * where metric=falls"}

// showScores are the stages that take the scores of whole axes and tell nothing of which is larger: they show
// them, choose by them what is drawn or used, or take their means.
var showScores = []string{"dataset/columns", "dataset/second-phase", "dataset/select", "report/boxplot",
	"report/curves", "report/sheet", "report/text", "score/adcc-means"}

// ofUnit are the columns that have the scores' unit, or are a share of them; those of a leaderboard's cases
// are called as the cases.
var ofUnit = []string{"mean", "low", "high", "behind", "behind low", "behind high", "common mean",
	"mean difference", "median", "relative", "rises", "falls", "number", "rival"}

// contest returns 4 methods' scores by 2 metrics, of scores[metric][method][image] in some unit.
func contest(scores [2][4][]float64, unit func(float64) float64, order []int) []stages.Data {
	var cells []stages.Data
	for k, metric := range []string{"falls", "rises"} {
		facts := stages.Measure{Direction: []stages.Direction{stages.Lower, stages.Higher}[k],
			Low: math.Inf(-1), High: math.Inf(1)}.Facts(nil)
		for i, method := range []string{"ant", "bee", "cat", "dog"} {
			var payloads [][]byte
			for _, at := range order {
				payloads = append(payloads, stages.Scalar(unit(scores[k][i][at])))
			}
			cells = append(cells, stagetest.At(stagetest.Items(facts, payloads...), "method", method,
				"metric", metric))
		}
	}
	return cells
}

// contests gives a stage a contest on its port of scores, and on a second one that of the metrics exchanged.
func contests(s stages.Stage, scores [2][4][]float64, unit func(float64) float64,
	order []int) map[string][]stages.Data {
	in := map[string][]stages.Data{}
	for _, p := range s.Inputs {
		if isScores(p) {
			in[p.Name] = contest(scores, unit, order)
			scores[0], scores[1] = scores[1], scores[0]
		}
	}
	return in
}

// TestAnswersShowLabels holds that answers call every id by its label, and tell nothing else than without
// labels.
func TestAnswersShowLabels(t *testing.T) {
	for _, s := range Builtin().Family("") {
		if s.Relation == stages.Whole && s.Output("answer") != nil && !s.Ordered {
			t.Errorf("%s has an answer, and gets no labels: it isn't Ordered", s.Name)
		}
	}
	labels, back := stages.Names{"method": {}, "metric": {}}, []string{}
	for axis, ids := range map[string][]string{"method": {"ant", "bee", "cat", "dog"},
		"metric": {"falls", "rises"}} {
		for _, id := range ids {
			labels[axis][id] = "‹" + id + " of " + axis + "›"
			back = append(back, labels[axis][id], "")
		}
	}
	ids := regexp.MustCompile(`\b(ant|bee|cat|dog|falls|rises)\b`)
	r := rand.New(rand.NewPCG(5, 1))
	for range 6 {
		var counts [2][4][]float64
		for k := range counts {
			for i := range counts[k] {
				for range 12 {
					counts[k][i] = append(counts[k][i], float64(i*r.IntN(2)+r.IntN(8)))
				}
			}
		}
		switch r.IntN(3) {
		case 0: // two of equal scores
			counts[0][1], counts[1][1] = counts[0][0], counts[1][0]
		case 1: // one without scores
			for k := range counts {
				counts[k][2] = slices.Repeat([]float64{math.NaN()}, 12)
			}
		}
		same := func(x float64) float64 { return x }
		for _, c := range comparisons {
			params := c.stage.NewParams()
			c.params(params)
			e, err := stagetest.Env(&c.stage,
				contests(c.stage, counts, same, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))
			if err != nil {
				t.Fatal(err)
			}
			e.Labels = labels
			if err := c.stage.Run(t.Context(), params, e); err != nil {
				t.Fatalf("%s: %v", c.stage.Name, err)
			}
			for _, o := range e.Outputs {
				if o.Port != "answer" {
					continue
				}
				if m := ids.FindString(strings.NewReplacer(back...).Replace(string(o.Data))); m != "" {
					t.Errorf("%s calls %s by its id: %s", c.stage.Name, m, o.Data)
				}
			}
		}
	}
}

func isScores(p stages.Port) bool { return p.Type == stages.Scores }

// TestTiesAreOfTheScores holds that p-values, effects, ranks, κ and whatever else comparisons tell are the
// same for scores that are counts, the counts as sevenths or as decimals of a file, in another unit, from
// another zero and of images in another order: which scores are equal is no question of their bits.
func TestTiesAreOfTheScores(t *testing.T) {
	named := slices.Clone(showScores)
	for _, c := range comparisons {
		named = append(named, c.stage.Name)
	}
	all := Builtin()
	for _, name := range all.Names() {
		s, _ := all.Lookup(name)
		takes := slices.ContainsFunc(s.Inputs, func(p stages.Port) bool { return p.Type == stages.Scores })
		if s.Relation == stages.Whole && takes != slices.Contains(named, name) {
			t.Errorf("%s takes whole axes of scores: %v; this test's lists have it: %v", name, takes, !takes)
		}
	}
	r := rand.New(rand.NewPCG(7, 3))
	units := map[string]func(float64) float64{
		"sevenths":       func(x float64) float64 { return x / 7 },
		"times 7 / 10":   func(x float64) float64 { return 7 * (x / 10) },
		"thirds":         func(x float64) float64 { return x / 3 },
		"sevenths + 0.1": func(x float64) float64 { return x/7 + 0.1 },
		"tenths − 12.3":  func(x float64) float64 { return x/10 - 12.3 },
		"small":          func(x float64) float64 { return x / 7 * 1e-30 },
		"sums": func(x float64) float64 { // whose last bits depend on the order of their terms
			return x/7 + 1e-14*(r.Float64()-0.5)
		},
		"decimals": func(x float64) float64 {
			y, _ := strconv.ParseFloat(fmt.Sprintf("%.17g", 0.3+x/10), 64)
			return y
		},
	}
	for range 12 {
		images := 5 + r.IntN(40)
		var counts [2][4][]float64
		for k := range counts {
			for i := range counts[k] {
				for range images {
					counts[k][i] = append(counts[k][i], float64(r.IntN(8)))
				}
			}
			if r.IntN(3) == 0 { // two methods of one mean
				copy(counts[k][1], counts[k][0])
				slices.Reverse(counts[k][1])
			}
		}
		order := make([]int, images)
		for i := range order {
			order[i] = i
		}
		for _, c := range comparisons {
			params := c.stage.NewParams()
			c.params(params)
			compare := func(what string, unit func(float64) float64, order []int) {
				t.Helper()
				want := stagetest.Run(t, c.stage, params,
					contests(c.stage, counts, func(x float64) float64 { return x }, order))
				got := stagetest.Run(t, c.stage, params, contests(c.stage, counts, unit, order))
				for port, payloads := range want.Payloads {
					if port != "answer" && port != "alpha" && port != "agreement" && port != "pairs" {
						sameNumbers(t, fmt.Sprintf("%s of %s in %s, %d images", port, c.stage.Name, what,
							images),
							payloads[0], got.Payloads[port][0])
					}
				}
			}
			for what, unit := range units {
				compare(what, unit, order)
			}
			shuffled := r.Perm(images)
			reordered := func(x float64) float64 { return x / 7 }
			want := stagetest.Run(t, c.stage, params, contests(c.stage, counts, reordered, order))
			got := stagetest.Run(t, c.stage, params, contests(c.stage, counts, reordered, shuffled))
			for port, payloads := range want.Payloads {
				if port != "answer" && port != "alpha" && port != "agreement" && port != "pairs" {
					sameNumbers(t, port+" of "+c.stage.Name+" in another order of images", payloads[0],
						got.Payloads[port][0])
				}
			}
		}
	}
}

// sameNumbers compares two tables but for the numbers that have the scores' unit.
func sameNumbers(t *testing.T, what string, a, b []byte) {
	t.Helper()
	want, err1 := stages.DecodeTable(a)
	got, err2 := stages.DecodeTable(b)
	if err1 != nil || err2 != nil || len(want.Rows) != len(got.Rows) {
		t.Fatalf("%s: %v, %v, %d and %d rows", what, err1, err2, len(want.Rows), len(got.Rows))
	}
	for i, row := range want.Rows {
		if !slices.Equal(row.Keys, got.Rows[i].Keys) {
			t.Errorf("%s: row %d is of %q, not of %q", what, i, got.Rows[i].Keys, row.Keys)
			continue
		}
		for k, x := range row.Numbers {
			y := got.Rows[i].Numbers[k]
			if name := want.Numbers[k].Name; !slices.Contains(ofUnit, name) &&
				!(math.Abs(float64(x-y)) <= 1e-12*max(1, math.Abs(float64(x)))) &&
				!(math.IsNaN(float64(x)) && math.IsNaN(float64(y))) {
				t.Errorf("%s: %s of %q is %v, not %v", what, name, row.Keys, y, x)
			}
		}
	}
}

package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// measuredScores are scores of three methods: exact and cheap ones.
type measuredScores struct{ exact, cheap [3][]float64 }

func measuredContest(items int) (m measuredScores) {
	r := rand.New(rand.NewPCG(11, 12))
	for range items {
		of := r.NormFloat64() // the image
		for k := range m.exact {
			y := 0.3*float64(k) + of + r.NormFloat64()
			m.exact[k], m.cheap[k] = append(m.exact[k], y), append(m.cheap[k], y+0.2+0.1*r.NormFloat64())
		}
	}
	return m
}

// of returns the scores of some items.
func of(values [3][]float64, items []int) (cells []stages.Data) {
	for k, method := range []string{"ig", "random", "rise"} {
		var payloads [][]byte
		var ids stages.ItemSlice
		for _, i := range items {
			id := fmt.Sprintf("item-%d", i)
			payloads = append(payloads, stages.Scalar(values[k][i]))
			ids = append(ids, stages.Item{ID: id, Origin: id})
		}
		d := stagetest.Items(stages.Measure{Direction: stages.Higher}.Facts(nil), payloads...)
		d.Items = ids
		cells = append(cells, stagetest.At(d, "method", method))
	}
	return cells
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// With exact scores of all images a report says what it says of these alone.
func TestExactOfAll(t *testing.T) {
	m, all := measuredContest(80), upTo(80)
	for _, s := range []struct {
		stage  stages.Stage
		port   string
		tables []string
	}{{Leaderboard, "scores", []string{"leaderboard", "details"}}, {Table, "values", []string{"table"}}} {
		want := stagetest.Run(t, s.stage, nil, map[string][]stages.Data{s.port: of(m.exact, all)})
		got := stagetest.Run(t, s.stage, nil, map[string][]stages.Data{s.port: of(m.cheap, all),
			"pilot": of(m.exact, all[:30]), "exact": of(m.exact, all[30:])})
		for _, table := range s.tables {
			if d := cmp.Diff(text(decodeTable(t, want, table)), text(decodeTable(t, got, table))); d != "" {
				t.Errorf("%s, −exact scores +cheap and exact ones\n%s", table, d)
			}
		}
	}
}

// Of exact scores of some images means, intervals and p are estimated: near those of all, which cheap scores
// aren't.
func TestExactOfSome(t *testing.T) {
	m, all := measuredContest(300), upTo(300)
	in := map[string][]stages.Data{"scores": of(m.cheap, all), "pilot": of(m.exact, all[100:140]),
		"exact": of(m.exact, slices.Concat(all[:20], all[220:260]))}
	r := stagetest.Run(t, Leaderboard, nil, in)
	details := decodeTable(t, r, "details")
	full := decodeTable(t, stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{
		"scores": of(m.exact, all)}), "details")
	// By hand: the pilot as it is, the others by the mean difference of the second phase.
	for k, row := range details.Rows {
		d, sum := 0.0, 0.0
		for i := range all {
			switch {
			case i >= 100 && i < 140:
				sum += m.exact[k][i]
			default:
				sum += m.cheap[k][i]
			}
			if i < 20 || i >= 220 && i < 260 {
				d += (m.exact[k][i] - m.cheap[k][i]) / 60
			}
		}
		if got, want := details.Number(row, "mean"), (sum+260*d)/300; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: the mean is %v, want %v", row.Keys, got, want)
		}
		for _, name := range []string{"mean", "low", "high", "behind", "behind low", "behind high"} {
			got, want := details.Number(row, name), full.Number(full.Rows[k], name)
			if !(math.Abs(got-want) < 0.05) {
				t.Errorf("%v: %s is %v, of all exact scores it is %v", row.Keys, name, got, want)
			}
		}
		got, want := details.Number(row, "p"), full.Number(full.Rows[k], "p")
		if !(math.Abs(math.Log(got/want)) < 1+0.15*math.Abs(math.Log(want))) && !math.IsNaN(want) {
			t.Errorf("%v: p is %v, of all exact scores it is %v", row.Keys, got, want)
		}
	}
	board := decodeTable(t, r, "leaderboard")
	shows(t, "the title", board.Title, "Leaderboard of method, exact scores of 100 of 300 images")
	shows(t, "the answer", string(r.Payloads["answer"][0]), "This is the answer of exact scores, "+
		"estimated from cheap scores: 100 of 300 images have exact scores, and intervals grew by at most ")
	claims := stagetest.Run(t, Leaderboard, func() *LeaderboardParams {
		p := Leaderboard.NewParams().(*LeaderboardParams)
		p.Claims = []string{"rise > ig"}
		return p
	}(), in)
	shows(t, "the answer", string(claims.Payloads["answer"][0]),
		"**rise** has a larger mean (better) than **ig**",
		fmt.Sprintf("%.4f against %.4f", details.Number(details.Rows[2], "mean"),
			details.Number(details.Rows[0], "mean")))
}

// Of groups means are estimated of the exact scores that the draw has of each: by hand. A group with none of
// the second phase isn't ranked.
func TestExactOfGroups(t *testing.T) {
	m, all := measuredContest(90), upTo(90)
	var rows [][]string
	for i := range all {
		rows = append(rows, []string{[]string{"a", "b", "c"}[i/30]})
	}
	columns := []stages.Data{columnsOf([]string{"domain"}, rows...)}
	pilot, second := upTo(90)[20:40], slices.Concat(all[:12], all[50:60], all[60:61])
	in := map[string][]stages.Data{"scores": of(m.cheap, all), "pilot": of(m.exact, pilot),
		"exact": of(m.exact, second), "columns": columns}
	p := Leaderboard.NewParams().(*LeaderboardParams)
	p.By = []string{"domain"}
	r := stagetest.Run(t, Leaderboard, p, in)
	details := decodeTable(t, r, "details")
	for _, row := range details.Rows {
		group, method := strings.Index("abc", row.Keys[0]), slices.Index([]string{"ig", "random", "rise"},
			row.Keys[1])
		sum, others, drawn := 0.0, 0.0, 0.0
		var d float64
		for i := 30 * group; i < 30*group+30; i++ {
			x, y := m.cheap[method][i], m.exact[method][i]
			if slices.Contains(pilot, i) {
				sum += y
				continue
			}
			sum, others = sum+x, others+1
			if slices.Contains(second, i) {
				d, drawn = d+y-x, drawn+1
			}
		}
		want := (sum + others*d/drawn) / 30
		if got := details.Number(row, "mean"); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: the mean is %v, want %v", row.Keys, got, want)
		}
		if low := details.Number(row, "low"); math.IsNaN(low) != (group == 2) {
			t.Errorf("%v: the interval begins at %v", row.Keys, low)
		}
	}
	const few = "fewer than two images of the second phase were computed in float32 of domain c, too few " +
		"for an interval: a larger pilot has more"
	if !slices.Contains(r.Warnings, few) {
		t.Errorf("the warnings are %q", r.Warnings)
	}
	shows(t, "the answer", string(r.Payloads["answer"][0]), "43 of 90 images have exact scores")
	// Without any, there is no mean and no rank.
	in["exact"] = of(m.exact, second[:22])
	r = stagetest.Run(t, Leaderboard, p, in)
	for _, row := range decodeTable(t, r, "details").Rows {
		if rank := row.Numbers[5]; math.IsNaN(float64(rank)) != (row.Keys[0] == "c") {
			t.Errorf("%v has the rank %v", row.Keys, rank)
		}
	}
	shows(t, "the answer", string(r.Payloads["answer"][0]), "Not ranked: domain c.")
	// A table has the same means, and claims of all images.
	q := Table.NewParams().(*TableParams)
	q.By, q.Rows, q.Claims = p.By, []string{"method"}, []string{"rise > ig"}
	in["values"] = in["scores"]
	table := stagetest.Run(t, Table, q, in)
	rows2 := decodeTable(t, table, "table").Rows
	if a, b := rows2[0].Numbers[0], decodeTable(t, r, "details").Rows[0].Numbers[0]; a != b {
		t.Errorf("the table has the mean %v, the leaderboard %v", a, b)
	}
	whole := decodeTable(t, stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{
		"scores": in["scores"], "pilot": in["pilot"], "exact": in["exact"]}), "details")
	shows(t, "the claim", string(table.Payloads["answer"][0]), fmt.Sprintf("%.4f against %.4f",
		whole.Number(whole.Rows[2], "mean"), whole.Number(whole.Rows[0], "mean")))
}

func TestExactRefuses(t *testing.T) {
	m, all := measuredContest(40), upTo(40)
	in := map[string][]stages.Data{"scores": of(m.cheap, all), "exact": of(m.exact, nil)}
	_, err := stagetest.Try(Leaderboard, nil, in)
	if err == nil || !strings.Contains(err.Error(), "no exact scores") {
		t.Errorf("no exact scores: %v", err)
	}
	wired := func(ports ...string) func(string) bool {
		return func(port string) bool { return slices.Contains(ports, port) }
	}
	for _, tc := range []struct {
		stage stages.Stage
		set   func(p any)
		wired []string
		want  string
	}{
		{Leaderboard, func(p any) { p.(*LeaderboardParams).Exact = "float16" }, nil,
			"isn't the precision of a reference"},
		{Leaderboard, func(p any) { p.(*LeaderboardParams).Exact = "float32" }, []string{"exact"},
			"leave out the parameter"},
		{Leaderboard, func(any) {}, []string{"pilot"}, "without exact"},
		{Table, func(p any) { p.(*TableParams).Statistic, p.(*TableParams).Exact = "median", "float32" }, nil,
			"the mean alone"},
	} {
		p := tc.stage.NewParams()
		tc.set(p)
		err := tc.stage.Check(p, wired(tc.wired...))
		if v, ok := p.(interface{ Validate() error }); ok && err == nil {
			err = v.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

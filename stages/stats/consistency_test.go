package stats

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/stagetest"
)

// ranking returns a cell for each of the methods a, b, … with the given scores.
func ranking(d stages.Direction, scores []float64, coord ...string) []stages.Data {
	var cells []stages.Data
	for i, x := range scores {
		m := stages.Measure{Direction: d, High: 1}
		data := stagetest.Items(m.Facts(nil), stages.Scalar(x))
		cells = append(cells, stagetest.At(data, append([]string{"method", string(rune('a' + i))},
			coord...)...))
	}
	return cells
}

func consistency(t *testing.T, cells []stages.Data, between ...string) (stages.Table, string) {
	t.Helper()
	r := stagetest.Run(t, Consistency, &ConsistencyParams{Rank: "method", Between: between},
		map[string][]stages.Data{"scores": cells})
	table, err := stages.DecodeTable(r.Payloads["table"][0])
	if err != nil {
		t.Fatal(err)
	}
	return table, string(r.Payloads["answer"][0])
}

// TestConsistency compares two nets in two orders by hand; small is good for morf.
func TestConsistency(t *testing.T) {
	var cells []stages.Data
	cells = append(cells, ranking(stages.Higher, []float64{5, 4, 3, 2, 1}, "net", "vgg", "order", "lerf")...)
	cells = append(cells, ranking(stages.Lower, []float64{1, 2, 3, 4, 5}, "net", "vgg", "order", "morf")...)
	cells = append(cells, ranking(stages.Higher, []float64{5, 4, 2, 3, 1}, "net", "vit", "order", "lerf")...)
	cells = append(cells, ranking(stages.Lower, []float64{2, 1, 4, 3, math.NaN()}, "net", "vit", "order",
		"morf")...)
	table, answer := consistency(t, cells)
	want := map[string][3]float64{
		"vgg morf vgg lerf": {1, 5, 0},
		"vit lerf vgg lerf": {0.9, 5, 2},
		"vit lerf vgg morf": {0.9, 5, 2},
		"vit morf vgg lerf": {0.6, 4, 4}, // a b c d against b a d c
		"vit morf vgg morf": {0.6, 4, 4},
		"vit morf vit lerf": {0.8, 4, 2}, // a b d c against b a d c
	}
	if len(table.Rows) != len(want) {
		t.Errorf("%d rows, want %d", len(table.Rows), len(want))
	}
	for _, r := range table.Rows {
		w, ok := want[strings.Join(r.Keys, " ")]
		if !ok || [3]float64{float64(r.Numbers[0]), float64(r.Numbers[1]), float64(r.Numbers[2])} != w {
			t.Errorf("%v: %v, want %v", r.Keys, r.Numbers, w)
		}
	}
	if want := "The rankings of 5 methods agree strongly (ρ > 0.8) in 3 of 6 pairs of cases, " +
		"moderately " +
		"(0.6 to 0.8) in 3 and weakly in 0; the mean ρ is 0.80. Where only net differs, they agree " +
		"strongly " +
		"(ρ > 0.8) in 1 of 2 pairs, moderately (0.6 to 0.8) in 1 and weakly in 0; the mean ρ is 0.75. " +
		"Where " +
		"only order differs, they agree strongly (ρ > 0.8) in 1 of 2 pairs, moderately (0.6 to 0.8) in " +
		"1 and " +
		"weakly in 0; the mean ρ is 0.90.\n"; answer != want {
		t.Errorf("the answer is\n%swant\n%s", answer, want)
	}

	table, _ = consistency(t, cells, "order")
	if got := strings.Join(table.Keys, ","); got != "net,order,against order" || len(table.Rows) != 2 {
		t.Errorf("between orders: keys %s, %d rows", got, len(table.Rows))
	}
	table, _ = consistency(t, cells, "net")
	if got := strings.Join(table.Rows[0].Keys, ","); got != "lerf,vit,vgg" || len(table.Rows) != 2 {
		t.Errorf("between nets: first %s, %d rows", got, len(table.Rows))
	}
}

// TestConsistencySmall checks cases that can't be ranked or compared.
func TestConsistencySmall(t *testing.T) {
	equal := ranking(stages.Higher, []float64{1, 1}, "net", "a")
	_, answer := consistency(t, equal)
	if answer != "No two cases differ in net alone: there is nothing to compare.\n" {
		t.Error(answer)
	}
	table, answer := consistency(t, append(equal, ranking(stages.Higher, []float64{1, 2}, "net", "b")...))
	if !table.Rows[0].Numbers[0].Undefined() || !strings.Contains(answer, "1 pair of cases, moderately "+
		"(0.6 to 0.8) in 0 and weakly in 0; ρ is undefined in 1.") {
		t.Error(answer)
	}
	for _, p := range []ConsistencyParams{{Rank: "net"}, {Rank: "method", Between: []string{"method"}},
		{Rank: "method", Between: []string{"order"}}} {
		if _, err := stagetest.Try(Consistency, &p,
			map[string][]stages.Data{"scores": equal}); (err == nil) !=
			(p.Rank == "net") {
			t.Errorf("%+v: error %v", p, err)
		}
	}
}

// TestConsistencyClaims: a claim about ids of an axis in which the two cases of a pair differ, or of the
// ranked ones, has no number.
func TestConsistencyClaims(t *testing.T) {
	ids := map[string][]string{"method": {"a", "b"}, "model": {"vgg", "vit"}, "order": {"lerf", "morf"}}
	for claim, want := range map[string]string{
		"correlation > 0.8 where model=vgg": "",
		"lerf > morf":                       "",
		"vgg > vit":                         "compares ids of the axis model, and a pair of cases has two",
		"a > b":                             "names ids that no axis has",
	} {
		p := ConsistencyParams{Rank: "method", Between: []string{"model"},
			List: claims.List{Claims: []string{claim}}}
		err := p.Known(ids)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", claim, err, want)
		}
	}
	all := ConsistencyParams{Rank: "method", List: claims.List{Claims: []string{"lerf > morf"}}}
	if all.Known(ids) == nil {
		t.Error("lerf > morf is accepted where pairs may differ in every axis")
	}
}

package stats

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestAgreement has rankings whose ρ is known by hand, on three nets. The metric's scores are better if
// smaller, the reference's if larger.
func TestAgreement(t *testing.T) {
	const up, down = stages.Higher, stages.Lower
	metric := []stages.Data{
		// The reference's order; by the image that all share, whatever the others say.
		cell(down, []float64{1, 9}, "method", "a", "net", "same"),
		cell(down, []float64{2, 1}, "method", "b", "net", "same"),
		cell(down, []float64{3, nan}, "method", "c", "net", "same"),
		cell(down, []float64{3}, "method", "a", "net", "opposite"),
		cell(down, []float64{2}, "method", "b", "net", "opposite"),
		cell(down, []float64{1}, "method", "c", "net", "opposite"),
		// d has no reference, and c no score: two are compared, which are equal.
		cell(down, []float64{5, 4}, "method", "a", "net", "tied"),
		cell(down, []float64{4, 5}, "method", "b", "net", "tied"),
		cell(down, []float64{nan, nan}, "method", "c", "net", "tied"),
		cell(down, []float64{1, 1}, "method", "d", "net", "tied"),
		// One pair of neighbours changes places: 1 − 6·2/(4·15).
		cell(down, []float64{1}, "method", "a", "net", "near"),
		cell(down, []float64{3}, "method", "b", "net", "near"),
		cell(down, []float64{2}, "method", "c", "net", "near"),
		cell(down, []float64{4}, "method", "d", "net", "near"),
	}
	var reference []stages.Data
	for _, net := range []string{"same", "opposite", "tied", "near"} {
		for k, method := range []string{"a", "b", "c", "d"} {
			if method != "d" || net == "near" {
				reference = append(reference, cell(up, []float64{-float64(k), -2 * float64(k)}, "method",
					method, "net", net))
			}
		}
	}
	want := map[string]float64{"same": 1, "opposite": -1, "tied": nan, "near": 0.8}
	pairs := map[string]float64{"same": 1, "opposite": 0, "tied": 0.5, "near": 5.0 / 6}
	p := &AgreementParams{Rank: "method", List: claims.List{Claims: []string{"rho > 0.5 where net=near"}}}
	in := map[string][]stages.Data{"scores": metric, "reference": reference}
	r := stagetest.Run(t, Agreement, p, in)
	for i, row := range tableOf(t, r, "table").Rows {
		x, err := stages.DecodeTensor(r.Payloads["agreement"][i])
		if err != nil {
			t.Fatal(err)
		}
		same, err := stages.DecodeTensor(r.Payloads["pairs"][i])
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []float64{float64(row.Numbers[1]), same.Float64s()[0]} {
			if w := pairs[row.Keys[0]]; !(math.Abs(got-w) < 1e-12) {
				t.Errorf("%v: the share of pairs is %v, want %v", row.Keys, got, w)
			}
		}
		for _, got := range []float64{float64(row.Numbers[0]), x.Float64s()[0]} {
			if w := want[row.Keys[0]]; !(math.Abs(got-w) < 1e-12) && !(math.IsNaN(got) && math.IsNaN(w)) {
				t.Errorf("%v: ρ is %v, want %v", row.Keys, got, w)
			}
		}
	}
	for _, row := range tableOf(t, r, "table").Rows {
		if n := row.Numbers; row.Keys[0] == "near" && (n[2] != 4 || n[3] != 2) {
			t.Errorf("of %v ranked, %v moved, want 2 of 4", n[2], n[3])
		}
	}
	if answer := string(r.Payloads["answer"][0]); answer != "Rho is above 0.5 (net near): 0.80.\n" {
		t.Errorf("the answer is %q", answer)
	}
}

// TestAgreementWithinTolerance checks that methods that the reference can't tell apart don't count in pairs,
// and share their rank in ρ: here a and b, whose order the metric has the other way round.
func TestAgreementWithinTolerance(t *testing.T) {
	in := map[string][]stages.Data{}
	for port, values := range map[string][]float64{"scores": {1, 2, 0}, "reference": {1, 0.999, 0}} {
		for k, x := range values {
			in[port] = append(in[port],
				cell(stages.Higher, []float64{x}, "method", []string{"a", "b", "c"}[k]))
		}
	}
	for tolerance, want := range map[float64][2]float64{0: {0.5, 2.0 / 3}, 0.01: {math.Sqrt(0.75), 1},
		2: {nan, nan}} {
		r := stagetest.Run(t, Agreement, &AgreementParams{Rank: "method", Tolerance: tolerance}, in)
		for k, x := range tableOf(t, r, "table").Rows[0].Numbers[:2] {
			got := float64(x)
			if !(math.Abs(got-want[k]) < 1e-9) && !(math.IsNaN(got) && math.IsNaN(want[k])) {
				t.Errorf("tolerance %v: number %d is %v, want %v", tolerance, k, got, want[k])
			}
		}
	}
}

// TestAgreementOfOneCase checks that one ranking is the item "all", that other axes are refused, and that
// nets without a reference are left out.
func TestAgreementOfOneCase(t *testing.T) {
	a, b := cell(stages.Higher, []float64{1}, "method", "a"), cell(stages.Higher, []float64{2}, "method", "b")
	p := &AgreementParams{Rank: "method"}
	r := stagetest.Run(t, Agreement, p, map[string][]stages.Data{"scores": {a, b}, "reference": {b, a}})
	if len(r.Payloads["agreement"]) != 1 || string(r.Payloads["answer"][0]) != "Spearman's ρ is 1.00.\n" {
		t.Errorf("%d items, answer %q", len(r.Payloads["agreement"]), r.Payloads["answer"])
	}
	of := func(net string) []stages.Data {
		return []stages.Data{cell(stages.Higher, []float64{1}, "method", "a", "net", net),
			cell(stages.Higher, []float64{2}, "method", "b", "net", net)}
	}
	if _, err := stagetest.Try(Agreement, p, map[string][]stages.Data{"scores": of("x"),
		"reference": {a, b}}); err == nil {
		t.Error("a reference without the axis net isn't refused")
	}
	r = stagetest.Run(t, Agreement, p, map[string][]stages.Data{"scores": append(of("x"), of("y")...),
		"reference": of("y")})
	if len(r.Payloads["agreement"]) != 1 || tableOf(t, r, "table").Rows[0].Keys[0] != "y" {
		t.Errorf("%d items, of which only y has a reference", len(r.Payloads["agreement"]))
	}
	if _, err := stagetest.Try(Agreement, p, map[string][]stages.Data{"scores": of("x"),
		"reference": of("y")}); err == nil {
		t.Error("scores without any reference aren't refused")
	}
}

package stats

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/stagetest"
)

// curves returns a cell with curves of one response.
func curves(facts stages.Facts, coord []string, values ...[]float64) stages.Data {
	all := stages.Facts{"responses": "share", "direction": "higher"}
	for name, v := range facts {
		all[name] = v
	}
	var payloads [][]byte
	for _, c := range values {
		payloads = append(payloads, stages.NewTensor(c, 1, len(c)).Encode())
	}
	return stagetest.At(stagetest.Items(all, payloads...), coord...)
}

// published are mean curves by metric, as the code of MAS writes them: five each, of the maps as they are and
// of four modifications. Those of a difference follow from two others.
type published map[string][][]float64

// kinds are the facts of the metrics' curves.
var kinds = map[string]stages.Facts{
	"SIC": {"response": "sic"}, "AIC": {"response": "aic"},
	"RISE_ins": {}, "RISE_del": {"direction": "lower"}, "RISE_diff": {"order": "difference"},
	"MAS_ins": {}, "MAS_del": {"direction": "lower"}, "MAS_diff": {"order": "difference"},
}

// check compares the sensitivities that the stage gives published curves.
func (p published) check(t *testing.T, want map[string]float64, tolerance float64) {
	t.Helper()
	for _, family := range []string{"RISE", "MAS"} {
		insertion, deletion := p[family+"_ins"], p[family+"_del"]
		var difference [][]float64
		for i := range insertion {
			d := make([]float64, len(insertion[i]))
			for k := range d {
				d[k] = insertion[i][k] - deletion[i][k]
			}
			difference = append(difference, d)
		}
		if insertion != nil {
			p[family+"_diff"] = difference
		}
	}
	var cells []stages.Data
	for name, means := range p {
		for i, curve := range means {
			cells = append(cells, curves(kinds[name], []string{"level", string(rune('0' + i)), "metric",
				name}, curve))
		}
	}
	r := stagetest.Run(t, Sensitivity,
		&SensitivityParams{Of: "level", Reference: "0", Response: "share", Variant: official},
		map[string][]stages.Data{"curves": cells})
	table := tableOf(t, r, "table")
	if len(table.Rows) != len(p) {
		t.Fatalf("%d rows of %d metrics", len(table.Rows), len(p))
	}
	for _, row := range table.Rows {
		got, want := float64(row.Numbers[0]), want[row.Keys[0]]
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s: %v, want %v", row.Keys[0], got, want)
		}
	}
}

func tableOf(t *testing.T, r stagetest.Result, port string) stages.Table {
	t.Helper()
	table, err := stages.DecodeTable(r.Payloads[port][0])
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// notebook returns the numbers that the authors' notebook gives one of their files of mean curves.
func notebook(t *testing.T, name string) map[string]float64 {
	t.Helper()
	b, err := os.ReadFile("testdata/notebook_table.json")
	var all map[string]map[string]float64
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all[name]
}

// TestOfficialSensitivity computes the noised half of a column of Table 1 from the authors' mean curves.
func TestOfficialSensitivity(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/curves_R101_ImageNet_noised.npz")
	p := published{}
	for key, names := range map[string][]string{"pic": {"SIC", "AIC"},
		"rise_mas": {"RISE_ins", "RISE_del", "MAS_ins", "MAS_del"}} {
		a := arrays[key]
		all, n := a.Float64s(), a.Shape[1]
		for i := range a.Shape[0] {
			p[names[i/5]] = append(p[names[i/5]], all[i*n:(i+1)*n])
		}
	}
	want := map[string]float64{}
	for key, a := range arrays {
		if name, ok := strings.CutPrefix(key, "expect_"); ok {
			want[name] = a.Float64s()[0]
			if other := notebook(t, "R101_ImageNet_noised")[name]; !(math.Abs(want[name]-other) <= 1e-12) {
				t.Errorf("%s: the two files say %v and %v", name, want[name], other)
			}
		}
	}
	p.check(t, want, 1e-9)
}

func TestSensitivity(t *testing.T) {
	cells := []stages.Data{
		curves(nil, []string{"size", "none"}, []float64{0, .5, 1}, []float64{0, nan, 1}),
		curves(nil, []string{"size", "small"}, []float64{0, .2, 1}, []float64{0, 1, 1}),
		curves(nil, []string{"size", "large"}, []float64{0, .8, 1}, []float64{0, 1, 1}),
	}
	run := func(p SensitivityParams, cells ...stages.Data) stagetest.Result {
		p.Of, p.Reference, p.Response = "size", "none", "share"
		return stagetest.Run(t, Sensitivity, &p, map[string][]stages.Data{"curves": cells})
	}
	// Distances 0.3/3 and 0.3/3, by 2, of an area of ½; the second image lacks a curve.
	r := run(SensitivityParams{Variant: paper}, cells...)
	if got, want := text(tableOf(t, r, "table")), " | 20.00 0.5000 1 1\n"; got != want {
		t.Errorf("table %q, want %q", got, want)
	}
	if got, want := string(r.Payloads["answer"][0]), "The distance in percent is 20.00. Images are left out "+
		"for undefined curves: 1 of all.\n"; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}

	// A deletion's distance is a share of 1 minus the area: ¼ here. One modification, 0.3/3 of it.
	down := stages.Facts{"direction": "lower"}
	r = run(SensitivityParams{Variant: paper},
		curves(down, []string{"size", "none"}, []float64{1, .7, .6}),
		curves(down, []string{"size", "small"}, []float64{1, 1, .6}))
	if got, want := text(tableOf(t, r, "table")), " | 40.00 0.2500 1 0\n"; got != want {
		t.Errorf("deletion: %q, want %q", got, want)
	}

	// SIC's sum of one distance is divided by two in the authors' code.
	sic := stages.Facts{"response": "sic"}
	for variant, want := range map[string]string{paper: " | 20.00 0.5000 1 0\n",
		official: " | 10.00 0.5000 1 0\n"} {
		r = run(SensitivityParams{Variant: variant},
			curves(sic, []string{"size", "none"}, []float64{0, .5, 1}),
			curves(sic, []string{"size", "small"}, []float64{0, .2, 1}))
		if got := text(tableOf(t, r, "table")); got != want {
			t.Errorf("%s: %q, want %q", variant, got, want)
		}
	}

	// A difference is stretched: −1, 0, ½ to 0, ⅔, 1; its area is 7/12. The other is the same curve, halved.
	minus := stages.Facts{"order": "difference"}
	r = run(SensitivityParams{Variant: paper},
		curves(minus, []string{"size", "none"}, []float64{-1, 0, .5}),
		curves(minus, []string{"size", "small"}, []float64{-.5, 0, .25}))
	if got, want := text(tableOf(t, r, "table")), " | 0.00 0.5833 1 0\n"; got != want {
		t.Errorf("difference: %q, want %q", got, want)
	}

	// No image has all curves.
	r = run(SensitivityParams{Variant: paper}, curves(nil, []string{"size", "none"}, []float64{0, nan, 1}),
		curves(nil, []string{"size", "small"}, []float64{0, .2, 1}))
	if got, want := text(tableOf(t, r, "table")), " | NaN NaN 0 1\n"; got != want {
		t.Errorf("nothing: %q, want %q", got, want)
	}
}

func TestSensitivityRefuses(t *testing.T) {
	none := []string{"size", "none"}
	ok := curves(nil, none, []float64{0, 1})
	for want, cells := range map[string][]stages.Data{
		"no id \"none\"":         {curves(nil, []string{"size", "small"}, []float64{0, 1})},
		"a single id":            {ok},
		"unequal distances":      {curves(stages.Facts{"shares": "0,1"}, none, []float64{0, 1}), ok},
		"2 points, and others 3": {curves(nil, []string{"size", "a"}, []float64{0, 1, 1}), ok},
		"no response \"share":    {curves(stages.Facts{"responses": "x"}, none, []float64{0, 1}), ok},
	} {
		_, err := stagetest.Try(Sensitivity, &SensitivityParams{Of: "size", Reference: "none",
			Response: "share", Variant: paper}, map[string][]stages.Data{"curves": cells})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestPublishedOffsets computes the constant-offset half of Table 1 from the authors' mean curves of MAS, of
// test_results/*/*_constant_sensitivity_1000_images.csv in chasewalker26/Magnitude-Aligned-Scoring, in
// thousandths: five of insertion, five of deletion. The curves of RISE and PIC don't move. One curve, whose
// rounding errors add up, has a decimal more.
func TestPublishedOffsets(t *testing.T) {
	printed := map[string]map[string]float64{
		"R101_ImageNet":  {"MAS_ins": 20.41, "MAS_del": 23.39, "MAS_diff": 22.02},
		"VIT16_ImageNet": {"MAS_ins": 20.21, "MAS_del": 21.10, "MAS_diff": 20.67},
		"R101_resisc45":  {"MAS_ins": 25.08, "MAS_del": 25.43, "MAS_diff": 25.25},
		"VIT16_resisc45": {"MAS_ins": 27.51, "MAS_del": 27.10, "MAS_diff": 27.31},
	}
	for name, want := range printed {
		b, err := os.ReadFile("testdata/" + name + "_constant.txt")
		if err != nil {
			t.Fatal(err)
		}
		p := published{}
		for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var curve []float64
			for _, field := range strings.Fields(line) {
				y, err := strconv.ParseFloat(field, 64)
				if err != nil {
					t.Fatal(err)
				}
				curve = append(curve, y/1000)
			}
			if len(curve) != 225 {
				t.Fatalf("%s: curve %d has %d points", name, i, len(curve))
			}
			metric := []string{"MAS_ins", "MAS_del"}[i/5]
			p[metric] = append(p[metric], curve)
		}
		p.check(t, want, 1e-2) // as printed
		p.check(t, notebook(t, name+"_constant"), 2e-3)
		for metric, percent := range notebook(t, name+"_constant") {
			if !strings.HasPrefix(metric, "MAS") && !(percent < 0.005+1e-3) {
				t.Errorf("%s, %s moves by %v percent", name, metric, percent)
			}
		}
	}
}

// TestOffsetsOfTheExperiment: in the published table of mas-sensitivity an offset moves the curves of MAS and
// no other's.
func TestOffsetsOfTheExperiment(t *testing.T) {
	f, err := os.Open("../../artifacts/mas-sensitivity/tables/sensitivity.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tests := 0
	for _, row := range rows[1:] {
		if row[0] != "offset" { // kind, metric, net, sensitivity
			continue
		}
		tests++
		percent, err := strconv.ParseFloat(row[3], 64)
		if moves := strings.HasPrefix(row[1], "mas"); err != nil || moves && !(percent > 10) ||
			!moves && !(percent < 0.01) {
			t.Errorf("%s of %s moves by %s percent: %v", row[1], row[2], row[3], err)
		}
	}
	if tests != 32 {
		t.Errorf("%d rows, want 8 metrics of 4 nets", tests)
	}
}

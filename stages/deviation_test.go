package stages

import (
	"math"
	"testing"
)

// TestDeviation states what each kind of payload is compared by.
func TestDeviation(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	f64 := func(v ...float64) []byte { return NewTensor(v, len(v)).Encode() }
	f32 := func(v ...float32) []byte { return NewTensor(v, len(v)).Encode() }
	i64 := func(v ...int64) []byte { return NewTensor(v, len(v)).Encode() }
	curve := func(v ...float64) []byte { return NewTensor(v, 2, len(v)/2).Encode() }
	table := func(key string, v ...Number) []byte {
		return Table{Keys: []string{"item"}, Numbers: make([]Column, len(v)),
			Rows: []Row{{Keys: []string{key}, Numbers: v}}}.Encode()
	}
	for _, tt := range []struct {
		name      string
		port      Type
		got, want []byte
		deviation float64
	}{
		{"the same", Maps, f32(1, 2), f32(1, 2), 0},
		{"of a map, all magnitudes", Maps, f32(1, -3, 4), f32(1, -4, 3), 0.25},
		{"a map of zeros, but for rounding", Maps, f64(1e-9, 0), f64(0, -1e-9), 1e-3},
		{"of images, the largest", Images, f32(0.25, 0.5), f32(0.75, 0.5), 0.5},
		{"a score of zero, but for rounding", Scores, f64(1e-7), f64(-1e-7), 2e-7},
		{"undefined in the same place", Maps, f64(nan, 2), f64(nan, 1), 1},
		{"undefined in another place", Maps, f64(nan, 1), f64(1, 1), inf},
		{"defined in another place", Maps, f64(1, 1), f64(nan, 1), inf},
		{"infinite in the same place", Maps, f64(inf, 2), f64(inf, 1), 1},
		{"infinite otherwise", Maps, f64(inf, 1), f64(-inf, 1), inf},
		{"another shape", Maps, f32(1, 2), f32(1), inf},
		{"another type", Maps, f64(1, 2), f32(1, 2), inf},
		{"cut off", Maps, f32(1, 2)[:9], f32(1, 2), inf},
		{"no tensor", Maps, f32(1, 2), nil, inf},
		{"response by response", Curves, curve(0.5, 0.25, 10, 20), curve(0.5, 0.75, 10, 20), 0.5},
		{"logits by their magnitude", Curves, curve(0.5, 0.75, 10, 21), curve(0.5, 0.75, 10, 20), 0.05},
		{"another class", Targets, i64(3), i64(4), 1},
		{"one of four steps", Removals, i64(1, 2, 3, 5), i64(1, 2, 3, 4), 0.25},
		{"a table, column by column", TableType, table("a", 2, 30), table("a", 2, 40), 0.25},
		{"a table of others", TableType, table("a", 2), table("b", 2), inf},
		{"no table", TableType, []byte("{"), table("b", 2), inf},
		{"a file", Text, []byte("a"), []byte("b"), inf},
	} {
		d := Deviation(tt.port, tt.got, tt.want)
		if !(math.Abs(d-tt.deviation) < 1e-12) && d != tt.deviation {
			t.Errorf("%s: %g, want %g", tt.name, d, tt.deviation)
		}
	}
}

// TestRounded states what results in another precision are compared by: each response by itself, of which a
// prediction may flip at a point.
func TestRounded(t *testing.T) {
	inf := math.Inf(1)
	rows := func(v ...float64) []byte { return NewTensor(v, 3, len(v)/3).Encode() }
	want := rows(0.5, 0.25, 10, 20, 1, 0)
	const all = "probability,logit,correct"
	for _, tt := range []struct {
		name      string
		port      Type
		responses string
		got       []byte
		by        []float64
	}{
		{"the same", Curves, all, want, []float64{0, 0, 0}},
		{"the mean of the points", Curves, all, rows(0.5, 0.35, 10, 20, 1, 0), []float64{0.05, 0, 0}},
		{"by the largest logit", Curves, all, rows(0.5, 0.25, 12, 20, 1, 0), []float64{0, 0.05, 0}},
		{"one flips", Curves, all, rows(0.5, 0.25, 10, 20, 0, 0), []float64{0, 0, 0}},
		{"both flip", Curves, all, rows(0.5, 0.25, 10, 20, 0, 1), []float64{0, 0, 1}},
		{"an undefined prediction", Curves, all, rows(0.5, 0.25, 10, 20, math.NaN(), 0),
			[]float64{0, 0, inf}},
		{"of subsets, too", Responses, all, rows(0.5, 0.35, 12, 20, 1, 0), []float64{0.05, 0.05, 0}},
		{"other responses", Curves, "morf,lerf,correct", rows(0.5, 0.35, 10, 20, 1, 0),
			[]float64{0.05, 0, 0}},
		{"without names", Curves, "", rows(0.5, 0.35, 10, 20, 1, 0), []float64{0.05}},
		{"of a map, all magnitudes", Maps, "", rows(0.5, 0.25, 10, 20, 1, 31.75), []float64{1}},
		{"another shape", Curves, all, rows(1, 2, 3), []float64{inf}},
	} {
		list := Rounded(Port{Name: "port", Type: tt.port}, Facts{"responses": tt.responses}, tt.got, want)
		if len(list) != len(tt.by) {
			t.Errorf("%s: %v", tt.name, list)
			continue
		}
		for i, d := range list {
			if !(math.Abs(d.By-tt.by[i]) < 1e-12) && d.By != tt.by[i] {
				t.Errorf("%s: %s deviates by %g, want %g", tt.name, d.Quantity, d.By, tt.by[i])
			}
		}
	}
}

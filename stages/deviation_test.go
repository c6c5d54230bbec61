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

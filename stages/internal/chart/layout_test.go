package chart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestGrid draws grids of panels with gaps: names of rows and columns stand once, in the same places for the
// panels of a row and of a column, a gap has its note, no texts overlap, and every panel of a row has the
// ticks that its row needs.
func TestGrid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 12 {
		rows, columns := 1+r.IntN(3), 1+r.IntN(3)
		k := &Curves{Title: "Curves", YLabel: "accuracy", W: 120, H: 80, ByRow: n%2 == 0,
			Within: [2]float64{math.Inf(-1), math.Inf(1)}, Names: []string{"ig", "rise"}, Level: "start",
			Grid: Grid{Gap: "not defined"}}
		for j := range rows {
			k.Rows = append(k.Rows, fmt.Sprintf("row %d", j))
		}
		for i := range columns {
			k.Columns = append(k.Columns, fmt.Sprintf("column %d", i))
		}
		gaps := 0
		for j := range rows {
			for i := range columns {
				if i+j > 0 && r.IntN(4) == 0 {
					gaps++
					continue
				}
				top := math.Pow(10, float64(j)) // rows differ in quantity
				k.At = append(k.At, [2]int{j, i})
				k.Panels = append(k.Panels, CurvePanel{XLabel: "share", Level: math.NaN(), Lines: []Line{
					{Name: "ig", X: []float64{0, 1}, Y: []float64{0, top}},
					{Name: "rise", X: []float64{0, 1}, Y: []float64{top, 0}}}})
			}
		}
		f := k.Figure()
		texts := textsOf(t, f.SVG())
		count := map[string]int{}
		for _, s := range texts {
			count[s.text]++
			if s.left < 0 || s.right > float64(f.Width) || s.top < 0 || s.bottom > float64(f.Height) {
				t.Errorf("%d × %d: %q is cut", rows, columns, s.text)
			}
		}
		for _, name := range slices.Concat(k.Rows, k.Columns) {
			if count[name] != 1 {
				t.Errorf("%d × %d: %q stands %d times", rows, columns, name, count[name])
			}
		}
		if count["not defined"] != gaps {
			t.Errorf("%d × %d: %d notes in %d gaps", rows, columns, count["not defined"], gaps)
		}
		used := map[int]bool{}
		for i := range k.Panels {
			used[k.At[i][1]] = true
		}
		if count["share"] != len(used) {
			t.Errorf("%d × %d: the x-axis is named %d times in %d columns", rows, columns, count["share"],
				len(used))
		}
		if k.ByRow && rows > 1 && slices.ContainsFunc(k.At, func(at [2]int) bool { return at[0] == 1 }) &&
			(count["10"] == 0 || count["1.0"] == 0) {
			t.Errorf("%d × %d: the rows have one scale", rows, columns)
		}
		for i, a := range texts {
			for _, b := range texts[:i] {
				x, y := min(a.right, b.right)-max(a.left, b.left), min(a.bottom, b.bottom)-max(a.top, b.top)
				if x > 0.5 && y > 0.5 {
					t.Errorf("%d × %d: %q and %q overlap by %.1f × %.1f", rows, columns, a.text, b.text, x, y)
				}
			}
		}
	}
}

// TestBelow checks that a line is dashed where it runs through a line before it, and nowhere else, whatever
// the scale.
func TestBelow(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		scale := math.Exp(8 * (r.Float64() - 0.5))
		n := 3 + r.IntN(20)
		x, a, b := make([]float64, n), make([]float64, n), make([]float64, n)
		want := make([]int, n)
		for i := range n {
			x[i], a[i] = float64(i)/float64(n-1), scale*r.Float64()
			if b[i] = a[i] + 0.004*scale*(2*r.Float64()-1); r.IntN(2) == 0 {
				b[i] = a[i] + 0.02*scale
			} else {
				want[i] = 1
			}
		}
		lines := []Line{{Name: "a", X: x, Y: a}, {Name: "b", X: x, Y: b}, {Name: "c", X: x[1:], Y: a[1:]}}
		got := Below(lines, scale)
		if !slices.Equal(got[1], want) || slices.Max(got[0]) > 0 || slices.Max(got[2]) > 0 {
			t.Fatalf("the lines %v and %v lie on each other at %v, want %v", a, b, got, want)
		}
	}
	// Drawn, equal lines differ: the second lets the first through.
	k := &Curves{Names: []string{"a", "b"}, W: 100, H: 100, Grid: Grid{PerRow: 1},
		Within: [2]float64{0, 1}}
	line := Line{X: []float64{0, 1}, Y: []float64{0, 1}}
	second := line
	line.Name, second.Name = "a", "b"
	k.Panels = []CurvePanel{{Level: math.NaN(), Lines: []Line{line, second}}}
	if svg := string(k.Figure().SVG()); strings.Count(svg, `stroke-dasharray="5 5"`) != 1 {
		t.Error("two equal lines are drawn as one")
	}
}

// TestDecades checks that logarithmic scales hold their values, between powers of ten.
func TestDecades(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		low := math.Pow(10, 12*(r.Float64()-0.5))
		high := low * math.Pow(10, 4*r.Float64()*float64(r.IntN(2)))
		k := decades(low, high, 5)
		if last := len(k) - 1; last < 1 || k[0] > math.Log10(low)+1e-8 || k[last] < math.Log10(high)-1e-8 ||
			math.Log10(low)-k[0] > 1 && last > 1 {
			t.Fatalf("%g to %g: %v", low, high, k)
		}
	}
	b := &Boxes{Groups: []string{""}, Grid: Grid{PerRow: 1}, Log: true, H: 100,
		Panels: []BoxPanel{{Places: []string{"2", "4"}, Values: [][][]float64{{{0.002, 0.003}}, {{0.5, 9}}}}}}
	texts := textsOf(t, b.Figure().SVG())
	for _, want := range []string{"0.001", "0.01", "0.1", "1", "10"} {
		if !slices.ContainsFunc(texts, func(s shown) bool { return s.text == want }) {
			t.Errorf("no tick %s", want)
		}
	}
	if slices.ContainsFunc(texts, func(s shown) bool { return s.text == "100" }) {
		t.Error("the scale goes beyond its values")
	}
}

// TestFamilies checks that families have their names once, above the first row, and that places of panels
// that have the same stand below the last one only.
func TestFamilies(t *testing.T) {
	b := &Boxes{Groups: []string{""}, H: 80, Grid: Grid{Rows: []string{"a", "b"}, Columns: []string{""},
		At: [][2]int{{0, 0}, {1, 0}}}}
	for range 2 {
		b.Panels = append(b.Panels, BoxPanel{Places: []string{"ig", "ixg", "rise"}, Chance: 0.25,
			Families: []string{"gradients", "gradients", "masks"},
			Values:   [][][]float64{{{0, 1}}, {{0.5, 1}}, {{0, 0.5}}}})
	}
	count := map[string]int{}
	for _, s := range textsOf(t, b.Figure().SVG()) {
		count[s.text]++
	}
	for _, name := range []string{"gradients", "masks", "ig", "ixg", "rise", "a", "b", "chance"} {
		if count[name] != 1 {
			t.Errorf("%q stands %d times", name, count[name])
		}
	}
}

// TestSharedLabels checks that a panel shares the label of its x-axis with the next one below it, and with no
// other: what stands next below a panel is true of it.
func TestSharedLabels(t *testing.T) {
	labels := []string{"inserted", "deleted", "deleted", "inserted", "inserted"}
	k := &Curves{W: 100, H: 60, Within: [2]float64{0, 1}, Grid: Grid{Columns: []string{""}}}
	for j, label := range labels {
		k.Rows, k.At = append(k.Rows, fmt.Sprint("row", j)), append(k.At, [2]int{j, 0})
		k.Panels = append(k.Panels, CurvePanel{XLabel: label, Level: math.NaN(),
			Lines: []Line{{X: []float64{0, 1}, Y: []float64{0, 1}}}})
	}
	var rows, shared []shown
	for _, s := range textsOf(t, k.Figure().SVG()) {
		if strings.HasPrefix(s.text, "row") {
			rows = append(rows, s)
		} else if slices.Contains(labels, s.text) {
			shared = append(shared, s)
		}
	}
	if len(shared) != 3 {
		t.Errorf("%d labels for three runs of equal ones", len(shared))
	}
	for j, row := range rows { // in the order in which they're drawn
		below := slices.IndexFunc(shared, func(s shown) bool { return s.top > row.bottom })
		if below < 0 || shared[below].text != labels[j] {
			t.Errorf("below %s stands another label than %q", row.text, labels[j])
		}
	}
}

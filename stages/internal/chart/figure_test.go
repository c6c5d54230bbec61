package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	pngBudget = 60 << 10
	svgBudget = 80 << 10
)

// methods returns names of attribution methods, long ones among them.
func methods(n int) []string {
	all := []string{"integrated-gradients (64 steps, blurred baseline)", "grad-cam", "saliency", "random",
		"attention-rollout", "lrp-epsilon-plus-flat", "guided-backprop", "occlusion"}
	out := make([]string, n)
	for i := range out {
		out[i] = all[i%len(all)]
		if i >= len(all) {
			out[i] += fmt.Sprintf(" #%d", i)
		}
	}
	return out
}

// figures returns every kind of figure with n methods.
func figures(n int) map[string]Figure {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	names := methods(n)
	heat := &HeatMap{Title: "Spearman ρ between rankings", Rows: names, Columns: names, Digits: 2,
		Bands: []float64{0.6, 0.8}}
	plain := &HeatMap{Title: "GAE", Rows: names, Columns: []string{"vgg", "resnet", "vit"}, Digits: 3}
	forest := &Intervals{Title: "Meta-Rank", XLabel: "κ", Names: names}
	ranks := &Ranks{Title: "Mean ranks of method", Names: names, Critical: 1.4}
	boxes := &Boxes{Title: "Localisation", YLabel: "localisation score",
		Groups: []string{"input", "middle", "final"},
		Grid:   Grid{PerRow: 3}, H: 170}
	for range names {
		row := make([]float64, n)
		for j := range row {
			row[j] = 2*r.Float64() - 1
		}
		heat.Values = append(heat.Values, row)
		plain.Values = append(plain.Values, []float64{-r.Float64(), r.Float64(), math.NaN()})
		x := r.NormFloat64()
		forest.Value, forest.Low = append(forest.Value, x), append(forest.Low, x-r.Float64())
		forest.High = append(forest.High, x+r.Float64())
		ranks.Rank = append(ranks.Rank, 1+r.Float64()*float64(n-1))
	}
	ranks.Groups = [][]int{{0, 1}}
	for _, setting := range []string{"GridPG", "DiFull", "DiPart"} {
		panel := BoxPanel{Title: setting, Places: names}
		for j := range names {
			var place [][]float64
			for k := range 3 {
				var v []float64
				for range 24 {
					y := min(max(0.3*float64(k)+0.2*r.NormFloat64(), 0), 1)
					if j == 1 && k == 2 {
						y = 1
					}
					v = append(v, y)
				}
				place = append(place, v)
			}
			panel.Values = append(panel.Values, place)
		}
		boxes.Panels = append(boxes.Panels, panel)
	}
	return map[string]Figure{"heatmap": heat.Figure(), "heatmap-plain": plain.Figure(),
		"intervals": forest.Figure(),
		"ranks":     ranks.Figure(), "boxes": boxes.Figure()}
}

// TestFigures draws every kind with few and many methods: files within the budget, the same however many
// processors draw, and every name whole and inside the figure.
func TestFigures(t *testing.T) {
	for _, n := range []int{2, 8, 20} {
		for kind, f := range figures(n) {
			svg, img := f.SVG(), f.PNG()
			if dir := os.Getenv("RUNEXP_LOOK"); dir != "" { // a folder to write the figures to
				for ext, b := range map[string][]byte{".svg": svg, ".png": img, ".pdf": f.PDF()} {
					if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(kind, "-", n, ext)), b,
						0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(svg) > svgBudget || len(img) > pngBudget {
				t.Errorf("%s of %d has %d bytes of SVG and %d of PNG", kind, n, len(svg), len(img))
			}
			names := map[string]bool{}
			for _, s := range textsOf(t, svg) {
				names[strings.TrimRight(s.text, " .0123456789")] = true
				names[s.text] = true
				if s.left < 0 || s.right > float64(f.Width) || s.top < 0 || s.bottom > float64(f.Height) {
					t.Errorf("%s of %d: %q is cut: (%.0f, %.0f) to (%.0f, %.0f) of %.0f × %.0f", kind, n,
						s.text, s.left, s.top, s.right, s.bottom, f.Width, f.Height)
				}
			}
			for _, name := range methods(n) {
				if !names[name] && !names[strings.TrimRight(name, " .0123456789")] {
					t.Errorf("%s of %d doesn't show %q whole", kind, n, name)
				}
			}
		}
	}
}

// A shown text has an upright bounding box in points, from its state width and font size.
type shown struct {
	text                     string
	left, right, top, bottom float64
}

func textsOf(t *testing.T, b []byte) []shown {
	t.Helper()
	var out []shown
	var attr map[string]string
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr = nil
			if e.Name.Local == "text" {
				attr = map[string]string{}
				for _, a := range e.Attr {
					attr[a.Name.Local] = a.Value
				}
			}
		case xml.CharData:
			if attr == nil {
				continue
			}
			x, y, w := number(attr["x"]), number(attr["y"]), number(attr["textLength"])
			size := float64(labelSize)
			if attr["font-size"] != "" {
				size = number(attr["font-size"])
			}
			s := shown{string(e), x, x + w, y - 0.75*size, y + 0.2*size}
			if strings.HasPrefix(attr["transform"], "rotate(-90") {
				s = shown{string(e), x - 0.75*size, x + 0.2*size, y - w, y}
			}
			out, attr = append(out, s), nil
		}
	}
}

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return x
}

// TestTextsDontOverlap compares the boxes of all texts with each other.
func TestTextsDontOverlap(t *testing.T) {
	for _, n := range []int{2, 8, 20} {
		for kind, f := range figures(n) {
			texts := textsOf(t, f.SVG())
			for i, a := range texts {
				for _, b := range texts[:i] {
					x := min(a.right, b.right) - max(a.left, b.left)
					y := min(a.bottom, b.bottom) - max(a.top, b.top)
					if x > 0.5 && y > 0.5 {
						t.Errorf("%s of %d: %q and %q overlap by %.1f × %.1f", kind, n, a.text, b.text, x, y)
					}
				}
			}
		}
	}
}

// TestFiguresAreDeterministic draws on one processor and, at once, on several.
func TestFiguresAreDeterministic(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	want := figures(8)
	files := map[string][3][]byte{}
	for kind, f := range want {
		files[kind] = [3][]byte{f.SVG(), f.PNG(), f.PDF()}
	}
	runtime.GOMAXPROCS(max(before, 4))
	defer runtime.GOMAXPROCS(before)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for kind, f := range figures(8) {
				if !bytes.Equal(f.SVG(), files[kind][0]) || !bytes.Equal(f.PNG(), files[kind][1]) ||
					!bytes.Equal(f.PDF(), files[kind][2]) {
					t.Errorf("%s: drawn again, the figure differs", kind)
				}
			}
		})
	}
	wg.Wait()
}

// TestSVGEscapes checks that names stay text: nothing that a reader's program runs or loads.
func TestSVGEscapes(t *testing.T) {
	hostile := `</text><script>alert(1)</script><image href="http://example.com/x.png" onload="x()"/>&<!--` +
		"\x00\x1b\n\xff\ufffe"
	m := &HeatMap{Title: hostile, Rows: []string{hostile}, Columns: []string{hostile},
		Values: [][]float64{{1}}}
	r := &Ranks{Title: hostile, Names: []string{hostile, "b"}, Rank: []float64{1, 2}, Critical: math.NaN()}
	for _, f := range []Figure{m.Figure(), r.Figure()} {
		d := xml.NewDecoder(bytes.NewReader(f.SVG()))
		shows := false
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("not XML: %v", err)
			}
			switch e := token.(type) {
			case xml.StartElement:
				if !strings.Contains(" svg rect path text ", " "+e.Name.Local+" ") {
					t.Errorf("an element %s", e.Name.Local)
				}
				for _, a := range e.Attr {
					if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") ||
						strings.Contains(a.Value, "url(") {
						t.Errorf("an attribute %s=%q", a.Name.Local, a.Value)
					}
				}
			case xml.Comment, xml.ProcInst, xml.Directive:
				t.Errorf("a %T", token)
			case xml.CharData:
				shows = shows || strings.Contains(string(e), "<script>alert(1)</script>")
			}
		}
		if !shows {
			t.Error("the name isn't shown as text")
		}
		f.PNG()
	}
}

// TestHeatMapColours reads the colours of cells from the pixels, and that numbers are readable on them.
func TestHeatMapColours(t *testing.T) {
	m := &HeatMap{Rows: []string{"a", "b"}, Columns: []string{"x", "y"}, Bands: []float64{0.6, 0.8},
		Values: [][]float64{{0.6, 0.61}, {0.81, math.NaN()}}}
	img, err := png.Decode(bytes.NewReader(m.Figure().PNG()))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			count[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}]++
		}
	}
	for _, v := range []float64{0, 0.5, 1} {
		c := Blues(v)
		best := 0
		for p, n := range count {
			if near(p, c) {
				best = max(best, n)
			}
		}
		if best < 1500 { // of 34 × 20 × 4 pixels, without the number
			t.Errorf("the colour %v of a band has %d pixels", c, best)
		}
	}
	for v := 0.0; v <= 1; v += 0.05 {
		for _, c := range []color.RGBA{Blues(v), Diverging().At(v), Diverging().At(-v)} {
			if r := contrastRatio(c, On(c)); r < 3.5 {
				t.Errorf("numbers on %v have a contrast of %.1f", c, r)
			}
		}
	}
}

func near(a, b color.RGBA) bool {
	d := func(x, y uint8) bool { return max(x, y)-min(x, y) <= colourStep }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B)
}

// contrastRatio is that of WCAG 2.1.
func contrastRatio(a, b color.RGBA) float64 {
	lum := func(c color.RGBA) float64 {
		f := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= 0.03928 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		return 0.2126*f(c.R) + 0.7152*f(c.G) + 0.0722*f(c.B)
	}
	x, y := lum(a), lum(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestBoxOf(t *testing.T) {
	got := BoxOf([]float64{1, 2, 3, 4, 5, 6, 7, 30})
	if want := (Box{1, 2.5, 4.5, 6.5, 7, 1}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if !BoxOf([]float64{1, 1, 1, 1, 1}).Collapsed() || got.Collapsed() {
		t.Error("collapsed boxes aren't told apart")
	}
	if !math.IsNaN(BoxOf(nil).Median) {
		t.Error("no values have a median")
	}
}

package main

import (
	"context"
	"encoding/csv"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestEquality holds our maps and scores to those of captum, Quantus and others, whose numbers
// docs/equality/run wrote to peers.csv: a line has the kind, the cell, the image, how far ours may be, and
// the values. Maps are compared by the sums of 8×8 squares, relative to the largest magnitude of these.
func TestEquality(t *testing.T) {
	if inUndetected(t) {
		return
	}
	runtimeOrSkip(t)
	if testing.Short() {
		t.Skip("35 seconds of a processor")
	}
	nets := stagetest.Sample(t, 2, []string{"vgg", "resnet", "vgg-bn", "vit"})
	p, err := plan.Load("../../docs/equality/equality.yaml", registry.Builtin(),
		plan.Overrides{Only: []string{"model=" + strings.Join(nets, ",")}})
	if err != nil {
		t.Fatal(err)
	}
	f := flags{}
	engine := f.engine()
	engine.store = t.TempDir()
	u := newUI(io.Discard, io.Discard)
	s, err := engine.open(u, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), drainKey{}, t.Context())
	result, err := s.complete(ctx, u, p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		result.Close()
		for _, c := range u.closing {
			c()
		}
	}()
	maps, scores := 0, 0
	for _, row := range readTable(t, "../../docs/equality/peers.csv") {
		kind, cell, within := row[0], row[1], number(t, row[3])
		if of := ofModel.FindStringSubmatch(cell); of == nil || !slices.Contains(nets, of[1]) {
			continue
		}
		image, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		got, want := ours(t, result, p, cell, image), []float64(nil)
		for _, text := range row[4:] {
			want = append(want, number(t, text))
		}
		scale := 1.0
		switch {
		case kind == "map":
			maps++
			got, scale = squares(got), 0
			for _, v := range want {
				scale = max(scale, math.Abs(v))
			}
			within = max(within, 2e-6) // the numbers have six digits
		case len(want) < len(got.values): // a curve: its first response, as it is or how far it has fallen
			got.values = curve(got, want)
			fallthrough
		default:
			scores++
			within = max(within, 2e-6)
		}
		if len(got.values) != len(want) {
			t.Fatalf("%s, image %d: %d values, and theirs are %d", cell, image, len(got.values), len(want))
		}
		for i, w := range want {
			g := got.values[i]
			if !(math.Abs(g-w) <= within*scale) && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Errorf("%s, image %d: value %d is %v, theirs %v: more than %v apart", cell, image, i, g, w,
					within*scale)
				break
			}
		}
	}
	checkDefects(t, result, p, nets)
	if maps < 15*len(nets) || scores < 50*len(nets) {
		t.Errorf("%d maps and %d scores are compared", maps, scores)
	}
}

// TestPeersShow checks that a comparison with the libraries' numbers shows something: no map of theirs is
// constant, and the scores of no stage are.
func TestPeersShow(t *testing.T) {
	scores := map[string][]string{} // by stage
	for _, row := range readTable(t, "../../docs/equality/peers.csv") {
		kind, cell, values := row[0], row[1], row[4:]
		if stage, _, _ := strings.Cut(cell, "["); kind == "score" {
			scores[stage] = append(scores[stage], values...)
		} else if constant(values) {
			t.Errorf("%s, image %s: all of their map is %s", cell, row[2], values[0])
		}
	}
	for stage, values := range scores {
		if constant(values) {
			t.Errorf("%s: all of their scores are %s", stage, values[0])
		}
	}
}

func constant(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
}

// checkDefects holds our numbers in the table of what Quantus gets wrong: three digits of each image's score.
func checkDefects(t *testing.T, r *pipeline.Result, p *plan.Plan, nets []string) {
	for _, row := range readTable(t, "../../docs/equality/defects.csv")[1:] {
		cell := row[2]
		of := ofModel.FindStringSubmatch(cell)
		if of == nil || !slices.Contains(nets, of[1]) {
			continue
		}
		for image, text := range strings.Split(row[3], ", ") {
			want, got := number(t, text), ours(t, r, p, cell, image).values[0]
			if !(math.Abs(got-want) <= 1e-2*math.Abs(want)) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s, image %d: %v, and docs/equality/defects.csv has %v", cell, image, got, want)
			}
		}
	}
}

var ofModel = regexp.MustCompile(`\bmodel=([a-z-]+)`)

// A grid is a tensor's values and shape.
type grid struct {
	values []float64
	shape  []int
}

// ours returns what a cell's port has for an image: stage[axis=id].port, by default the first port.
func ours(t *testing.T, r *pipeline.Result, p *plan.Plan, name string, image int) grid {
	t.Helper()
	name, port, _ := strings.Cut(name, "].")
	if port != "" {
		name += "]"
	}
	cells, err := p.Fitting(name)
	if err != nil || len(cells) != 1 {
		t.Fatalf("%s fits %d cells: %v", name, len(cells), err)
	}
	outputs := cells[0].Stage.Outputs
	at := max(0, slices.IndexFunc(outputs, func(o stages.Port) bool { return o.Name == port }))
	d, err := r.Data(context.Background(), cells[0], at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Load(image)
	if err != nil {
		t.Fatal(err)
	}
	tensor, err := stages.DecodeTensor(b)
	if err != nil {
		t.Fatal(err)
	}
	return grid{tensor.Float64s(), tensor.Shape}
}

// squares returns the sums of a map over channels and 8×8 squares.
func squares(m grid) grid {
	h, w := m.shape[len(m.shape)-2], m.shape[len(m.shape)-1]
	sums := make([]float64, 64)
	for i, v := range m.values {
		y, x := i/w%h, i%w
		sums[y/(h/8)*8+x/(w/8)] += v
	}
	return grid{sums, []int{8, 8}}
}

// curve returns the first response of curves after its first point, or, where theirs begin near 0, how far it
// has fallen since.
func curve(c grid, theirs []float64) []float64 {
	first := c.values[:c.shape[len(c.shape)-1]]
	if math.Abs(first[1]-theirs[0]) <= math.Abs(first[0]-first[1]-theirs[0]) {
		return first[1:]
	}
	fallen := make([]float64, len(first)-1)
	for i, v := range first[1:] {
		fallen[i] = first[0] - v
	}
	return fallen
}

// TestDocsEquality checks that the table of docs/equality.md is docs/equality.csv, and what it claims: that
// maps and scores are equal, at last under one definition, up to what rounding changes in the library itself.
func TestDocsEquality(t *testing.T) {
	_, rest, _ := strings.Cut(page(t, "docs/equality.md"), "<!-- made by docs/equality/run -->\n")
	rest, _, _ = strings.Cut(rest, "<!-- end -->")
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	rows := readTable(t, "../../docs/equality.csv")
	if len(lines) != len(rows)+1 || len(rows) < 40 {
		t.Fatalf("%d lines of the page, and %d of the file", len(lines), len(rows))
	}
	lines = slices.Delete(lines, 1, 2)
	checkDefectsPage(t)
	for i, row := range rows {
		if want := "| " + strings.Join(row, " | ") + " |"; lines[i] != want {
			t.Errorf("docs/equality.md has\n%s\nwhere docs/equality.csv has\n%s", lines[i], want)
		}
		if i == 0 {
			continue
		}
		difference, then := row[3], row[6]
		if row[4] == "" {
			then = difference
		}
		if then == "" {
			continue // the page tells of it in words
		}
		rounding := 0.0
		if row[7] != "" {
			rounding = number(t, row[7])
		}
		if d := number(t, then); d > max(1e-3, 50*rounding) {
			t.Errorf("%s %s: %s isn't equal", row[0], row[1], then)
		}
	}
}

// TestDocsONNXPeers checks that the table of other programs on ONNX files is docs/equality/onnx_peers.csv,
// and what the page claims: runexp takes all nets, and its gradients agree with finite differences up to
// rounding.
func TestDocsONNXPeers(t *testing.T) {
	_, rest, _ := strings.Cut(page(t, "docs/equality.md"), "<!-- made by docs/equality/onnx-peers -->\n")
	rest, _, _ = strings.Cut(rest, "<!-- end -->")
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	rows := readTable(t, "../../docs/equality/onnx_peers.csv")
	if len(lines) != len(rows)+1 || len(rows) < 14 {
		t.Fatalf("%d lines of the page, and %d of the file", len(lines), len(rows))
	}
	lines = slices.Delete(lines, 1, 2)
	for i, row := range rows {
		if want := "| " + strings.Join(row, " | ") + " |"; lines[i] != want {
			t.Errorf("docs/equality.md has\n%s\nwhere docs/equality/onnx_peers.csv has\n%s", lines[i], want)
		}
		if i > 0 && number(t, row[1]) > 1e-5 {
			t.Errorf("%s: runexp's gradient deviates by %s", row[0], row[1])
		}
	}
}

// checkDefectsPage checks that the page's table of what Quantus gets wrong is docs/equality/defects.csv.
func checkDefectsPage(t *testing.T) {
	_, rest, _ := strings.Cut(page(t, "docs/equality.md"), "<!-- made by docs/equality/run: defects -->\n")
	rest, _, _ = strings.Cut(rest, "<!-- end -->")
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	rows := readTable(t, "../../docs/equality/defects.csv")[1:]
	if len(lines) != len(rows)+2 || len(rows) < 10 {
		t.Fatalf("%d lines of the page, and %d of docs/equality/defects.csv", len(lines), len(rows))
	}
	for i, row := range rows {
		cells := strings.Split(lines[i+2], " | ")
		if n := len(cells); n != 5 || cells[1] != row[1] || cells[3] != row[3] || cells[4] != row[4]+" |" {
			t.Errorf("docs/equality.md has\n%s\nwhere docs/equality/defects.csv has\n%s", lines[i+2], row)
		}
	}
}

func readTable(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Package zoo holds the compiler against classifiers of every family: nets that zoo.py builds, gives new
// numbers and exports, whose derivatives PyTorch knows in double precision.
//
// The nets aren't part of the project. make zoo makes them, in minutes, and holds each against its reference;
// what came out is in zoo.csv, one row a net and exporter. Ten small ones lie in testdata, for tests.
package zoo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A specimen is a net of zoo.py as one of the exporters wrote it.
type specimen struct {
	name, exporter string
	dir            string
	known          known
	export         export
}

// known is what zoo.py says of a net.
type known struct {
	Name   string
	Target int
	Single float64 // the relative error of PyTorch's derivative in single precision
	Logits []float64
	// Slopes are PyTorch's derivatives along the directions in the array of that name, by passes forwards,
	// where its derivative by a pass backwards contradicts them.
	Slopes  []float64
	Exports []export
}

type export struct {
	Exporter, File, Error string
	Opset, Batch          int
}

// specimens returns all nets in a folder, in the order of the table.
func specimens(t *testing.T, dir string) []specimen {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []specimen
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var k known
		if err := json.Unmarshal(b, &k); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, x := range k.Exports {
			out = append(out, specimen{k.Name, x.Exporter, dir, k, x})
		}
	}
	if len(out) == 0 {
		t.Fatalf("there is no net in %s", dir)
	}
	slices.SortFunc(out, func(a, b specimen) int { return strings.Compare(a.key(), b.key()) })
	return out
}

func (s specimen) key() string { return s.name + " " + s.exporter }

// array reads an array from the net's folder.
func (s specimen) array(what string) ([]float64, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, strings.ReplaceAll(s.name, "/", ".")+"."+what+".npy"))
	if err != nil {
		return nil, err
	}
	a, err := npy.Decode(b)
	return a.Float64s(), err
}

// net reads the net as experiments do.
func (s specimen) net() (*program.Net, error) {
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Preset, p.Kind = filepath.Join(s.dir, s.export.File), "unit", "logits"
	r, err := stagetest.Try(model.ONNX, p, nil)
	if err != nil {
		return nil, err
	}
	m, err := modelfile.Decode(r.Payloads["model"][0])
	if err != nil {
		return nil, err
	}
	return modeltest.NetOf(m)
}

// derivative returns the derivative of the target's logit at the image by some rules, and the logits. If the
// net takes two images, another one is added.
func (s specimen) derivative(t *testing.T, n *program.Net, slot stages.Slot,
	p relevance.Policy) (derivative, logits []float32, err error) {
	image, err := s.array("image")
	if err != nil {
		return nil, nil, err
	}
	g, err := n.Gradient(t.Context(), slot, lower.Question{Rules: p}, 2)
	if err != nil {
		return nil, nil, err
	}
	if len(image) != n.Size() {
		return nil, nil, fmt.Errorf("the image has %d values, and the net takes %d", len(image), n.Size())
	}
	for i := range g.Batch {
		row := g.Image(i)
		for k, v := range image {
			row[k] = float32(v)
			if i > 0 {
				row[k] = float32(image[len(image)-1-k])
			}
		}
		g.Explain(i, program.Target{Class: s.known.Target, Minus: -1})
	}
	if err := g.Run(t.Context()); err != nil {
		return nil, nil, err
	}
	return slices.Clone(g.Gradient(0)), slices.Clone(g.Row(0)), nil
}

// limit is the relative error that a derivative may have.
func (s specimen) limit() float64 { return math.Max(1e-4, 2*s.known.Single) }

// distance returns ‖a − b‖/‖b‖, infinity where that is no number.
func distance(a []float32, b []float64) float64 {
	var off, norm float64
	for i, v := range b {
		d := float64(a[i]) - v
		off += d * d
		norm += v * v
	}
	if math.IsNaN(off / norm) {
		return math.Inf(1)
	}
	return math.Sqrt(off / norm)
}

// slot is a CPU with one thread that keeps what is made on it until it is closed.
type slot struct{ stages.Slot }

func newSlot() slot { return slot{stagetest.NewSlot()} }

func (s slot) close() { stagetest.Release(s.Slot) }

func (slot) Device() stages.Device { return stages.Device{Class: "cpu", Threads: 1} }

// folder returns where the nets of zoo.py lie.
func folder(t *testing.T) string {
	dir := os.Getenv("RUNEXP_ZOO")
	if dir == "" {
		t.Skip("skipped: make zoo makes the nets, and says in RUNEXP_ZOO where they are")
	}
	return dir
}

// TestZoo holds every net against its reference and writes what came out into the table.
func TestZoo(t *testing.T) {
	dir := folder(t)
	table := readTable(t)
	for _, s := range specimens(t, dir) {
		t.Run(s.name+"/"+s.exporter, func(t *testing.T) {
			r, err := s.hold(t)
			if err != nil {
				r.Problem = clause(err)
				if errors.Is(err, errExport) {
					t.Log(r.Problem)
				} else {
					t.Error(r.Problem)
				}
			}
			table = table.with(r)
			table.write(t)
		})
	}
}

// clause returns the first line of an error, in a length that a table bears.
func clause(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > 240 {
		text = text[:240] + "…"
	}
	return text
}

// hold returns a specimen's row. The error says why there is no derivative, or that it is wrong.
func (s specimen) hold(t *testing.T) (row, error) {
	r := row{Net: s.name, Exporter: s.exporter, Single: s.known.Single}
	if s.export.Error != "" {
		return r, fmt.Errorf("%w: %s", errExport, s.export.Error)
	}
	r.Opset, r.Batch = s.export.Opset, strconv.Itoa(s.export.Batch)
	if s.export.Batch == 0 {
		r.Batch = "free"
	}
	n, err := s.net()
	if err != nil {
		return r, err
	}
	slot := newSlot()
	defer slot.close()
	g, err := n.Graph(t.Context(), slot, n.Fit(2, 2))
	if err != nil {
		return r, err
	}
	r.describe(g)
	got, logits, err := s.derivative(t, n, slot, relevance.Derivative())
	if err != nil {
		return r, err
	}
	if r.Error, err = s.error(got); err != nil {
		return r, err
	}
	if e := distance(logits, s.known.Logits); e > 1e-3 {
		return r, errors.New("the exported net isn't the net: its logits are off by " + figure(e))
	}
	if r.Share, err = s.share(t, n, slot, got); err != nil {
		return r, err
	}
	if !(r.Error <= s.limit()) {
		return r, fmt.Errorf("the relative error is %s, and may be %s", figure(r.Error), figure(s.limit()))
	}
	return r, nil
}

// error returns a derivative's relative distance from the reference.
func (s specimen) error(got []float32) (float64, error) {
	if s.known.Slopes == nil {
		want, err := s.array("gradient")
		if err != nil {
			return 0, err
		}
		return distance(got, want), nil
	}
	directions, err := s.array("directions")
	if err != nil {
		return 0, err
	}
	slopes := make([]float32, len(s.known.Slopes))
	for k := range slopes {
		sum := 0.0
		for i, g := range got {
			sum += float64(g) * directions[k*len(got)+i]
		}
		slopes[k] = float32(sum)
	}
	return distance(slopes, s.known.Slopes), nil
}

// errExport is nothing that the compiler could mend.
var errExport = errors.New("the exporter fails")

// describe notes what the simplified graph has.
func (r *row) describe(g *onnx.Graph) {
	for _, n := range g.Proto.Graph.Node {
		r.Nodes++
		if !slices.Contains(r.Operators, n.OpType) {
			r.Operators = append(r.Operators, n.OpType)
		}
	}
	slices.Sort(r.Operators)
	at := func(v string) string {
		if v == "" {
			return ""
		}
		var d []string
		for _, k := range g.Shape(v)[1:] {
			d = append(d, strconv.Itoa(k))
		}
		return v + " " + strings.Join(d, "×")
	}
	middle, final := relevance.Layers(g)
	r.Middle, r.Final = at(middle), at(final)
}

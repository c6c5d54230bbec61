package publish

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// A world is a small experiment: every test changes something in it and looks at what becomes of the folder.
type world struct {
	methods []string
	steps   map[string]int     // a method's parameter, part of its definition
	shift   map[string]float64 // added to a method's scores: another processor, or a bug
	failed  map[string]bool    // methods whose maps fail
	items   int
	grey    uint8 // added to the sheet's pixels
	madeBy  string
	nan     string // the method whose first score is undefined
	publish []string
	order   []string // of the rows in the leaderboard; by score without it
}

func newWorld() *world {
	return &world{
		methods: []string{"ig", "random", "rise"}, steps: map[string]int{}, shift: map[string]float64{},
		failed: map[string]bool{},
		items:  5, madeBy: "cpu, ONNX Runtime 1.24.1", nan: "random",
		publish: []string{"leaderboard", "sheet"},
	}
}

const tolerance = 1e-4

func (w *world) score(method string, i int) float64 {
	if method == w.nan && i == 0 {
		return math.NaN()
	}
	base := map[string]float64{"ig": 0.25, "random": 0.5, "rise": 1.0 / 3, "abs": 0.125}[method]
	return base + 0.01*float64(i) + 0.1*float64(w.steps[method]) + w.shift[method]
}

func (w *world) results() *Results {
	r := &Results{
		Name: "small", Title: "Which method explains a small net?",
		Command:    "runexp run experiments/small.yaml",
		Experiment: []byte("name: small\nseed: 7\n"), Publish: w.publish,
	}
	digest := func(parts ...any) stages.Digest { return stages.Sum([]byte(fmt.Sprint(parts...))) }
	r.Cells = append(r.Cells,
		Cell{Name: "images", Stage: "images", Definition: digest("images", w.items), N: w.items,
			Params: fmt.Appendf(nil, `{"count": %d, "size": 64}`, w.items)})
	var all []any
	any1 := false
	for _, m := range w.methods {
		coord := []stages.Coord{{Axis: "method", ID: m}}
		def := digest("maps", m, w.steps[m], w.items)
		all = append(all, m, def)
		maps := Cell{Name: "maps[method=" + m + "]", Stage: "maps", Coord: coord, Definition: def, N: w.items,
			MadeBy: w.madeBy, Params: fmt.Appendf(nil, `{"steps":%d}`, w.steps[m])}
		auc := Cell{Name: "auc[method=" + m + "]", Stage: "auc", Coord: coord, Definition: digest("auc", def),
			N: w.items}
		if w.failed[m] {
			any1 = true
			maps.State, auc.State = Failed, Blocked
		} else {
			var values Values
			for i := range w.items {
				values = append(values, Value{fmt.Sprintf("img-%02d", i), w.score(m, i)})
			}
			auc.Scores = []Score{{"auc",
				stages.Measure{Unit: "probability", Direction: stages.Lower, Low: 0, High: 1,
					Tolerance: tolerance}, values.items()}}
		}
		r.Cells = append(r.Cells, maps, auc)
	}
	board := Cell{Name: "leaderboard", Stage: "leaderboard", Definition: digest("board", all), N: -1}
	sheet := Cell{Name: "sheet", Stage: "sheet", Definition: digest("sheet", all), N: -1}
	if any1 {
		board.State, sheet.State = Blocked, Blocked
	} else {
		board.Tables = []Table{{"table", w.board()}}
		board.Texts = []Text{{Port: "answer", Markdown: w.answer()}}
		sheet.Figures = []Figure{{"figure", "png", "maps of " + strings.Join(w.methods, ", "), w.picture()},
			{"decay", "svg", "", w.drawing()}}
	}
	r.Cells = append(r.Cells, board, sheet)
	if !slices.Contains(w.publish, "leaderboard") {
		board := &r.Cells[len(r.Cells)-2]
		board.Tables, board.Texts = nil, nil
	}
	if !slices.Contains(w.publish, "sheet") {
		r.Cells[len(r.Cells)-1].Figures = nil
	}
	return r
}

func (w *world) mean(m string) float64 {
	sum, n := 0.0, 0
	for i := range w.items {
		if x := w.score(m, i); !math.IsNaN(x) {
			sum += x
			n++
		}
	}
	return sum / float64(n)
}

func (w *world) ranked() []string {
	if w.order != nil {
		return w.order
	}
	ms := slices.Clone(w.methods)
	slices.SortFunc(ms, func(a, b string) int {
		if w.mean(a) < w.mean(b) {
			return -1
		}
		return 1
	})
	return ms
}

func (w *world) board() stages.Table {
	t := stages.Table{Title: "Leaderboard of method", Ranked: true, Keys: []string{"method"},
		Numbers: []stages.Column{
			{Name: "rank", Direction: stages.Lower},
			{Name: "mean", Unit: "probability", Direction: stages.Lower, Tolerance: tolerance, Digits: 3},
		}}
	for i, m := range w.ranked() {
		t.Rows = append(t.Rows,
			stages.Row{Keys: []string{m},
				Numbers: []stages.Number{stages.Number(i + 1), stages.Number(w.mean(m))}})
	}
	return t
}

func (w *world) answer() string {
	return fmt.Sprintf("**%s** ranks first of %d (mean %.3f).\n", w.ranked()[0], len(w.methods),
		w.mean(w.ranked()[0]))
}

func (w *world) picture() []byte {
	p := image.NewGray(image.Rect(0, 0, 20, 10))
	for i := range p.Pix {
		p.Pix[i] = uint8(i) + w.grey
	}
	p.SetGray(0, 0, color.Gray{w.grey})
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (w *world) drawing() []byte {
	return fmt.Appendf(nil, "<svg><path d=\"M0 0L10 %s\" stroke=\"#a0b1c2\"/></svg>\n",
		typeset.Format(5+float64(w.grey)/4, typeset.Digits))
}

// Values are items in memory.
type Values []Value

// A Value is the score of one item, NaN where it's undefined.
type Value struct {
	ID    string
	Value float64
}

func (v Values) items() (items Items) {
	for _, x := range v {
		items.IDs, items.Values = append(items.IDs, x.ID), append(items.Values, x.Value)
	}
	return items
}

// folder reads all of a folder, whatever is in it.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			files[filepath.ToSlash(name)+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if g != want[name] {
			t.Errorf("%s is\n%s\nwant\n%s", name, clip(g), clip(want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s shouldn't be there", name)
		}
	}
}

func clip(s string) string {
	if len(s) > 3000 {
		return s[:3000] + "…"
	}
	return s
}

func write(t *testing.T, dir string, r *Results) Verdict {
	t.Helper()
	v, err := Write(dir, r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fresh writes a review to an empty folder and returns it.
func fresh(t *testing.T, r *Results) (string, map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	write(t, dir, r)
	return dir, folder(t, dir)
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

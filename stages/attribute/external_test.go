package attribute

import (
	"archive/zip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// named returns images of 2×3 pixels with the given ids.
func named(ids ...string) map[string][]stages.Data {
	var payloads [][]byte
	for i := range ids {
		payloads = append(payloads, stages.NewTensor(slices.Repeat([]uint8{uint8(i)}, 18), 3, 2, 3).Encode())
	}
	d := stagetest.Items(nil, payloads...)
	for i, id := range ids {
		d.Items.(stages.ItemSlice)[i].ID, d.Items.(stages.ItemSlice)[i].Origin = id, id
	}
	return map[string][]stages.Data{"images": {d}}
}

// flat is a 2×3 map of one value.
func flat(x float32) []byte {
	return golden.NPY(stages.NewTensor(slices.Repeat([]float32{x}, 6), 2, 3))
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func archive(t *testing.T, path string, arrays map[string][]byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, b := range arrays {
		w, err := z.Create(name + ".npy")
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// external runs the stage on maps at path and returns the first value of each map.
func external(t *testing.T, path string, ids ...string) []float64 {
	t.Helper()
	p := External.NewParams().(*ExternalParams)
	p.Path = path
	r := stagetest.Run(t, External, p, named(ids...))
	var first []float64
	for _, b := range r.Payloads["maps"] {
		m, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.Shape, []int{2, 3}) {
			t.Fatalf("a map has shape %v", m.Shape)
		}
		first = append(first, m.Float64s()[0])
	}
	return first
}

func TestExternal(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "maps", "cats", "1.jpg.npy"), flat(1))
	write(t, filepath.Join(dir, "maps", "cats", "2.npy"), flat(2))
	write(t, filepath.Join(dir, "maps", "dog.v2.npy"), flat(3))
	ids := []string{"dog.v2", "cats/1.jpg", "cats/2.png"}
	want := []float64{3, 1, 2}
	if got := external(t, filepath.Join(dir, "maps"), ids...); !slices.Equal(got, want) {
		t.Errorf("folder: %v, want %v", got, want)
	}
	archive(t, filepath.Join(dir, "maps.npz"), map[string][]byte{"cats/1.jpg": flat(1), "cats/2": flat(2),
		"dog.v2": flat(3), "unused": flat(4)})
	if got := external(t, filepath.Join(dir, "maps.npz"), ids...); !slices.Equal(got, want) {
		t.Errorf("archive: %v, want %v", got, want)
	}
	var stack []float32
	for _, x := range want {
		stack = append(stack, slices.Repeat([]float32{float32(x)}, 6)...)
	}
	write(t, filepath.Join(dir, "maps.npy"), golden.NPY(stages.NewTensor(stack, 3, 2, 3)))
	if got := external(t, filepath.Join(dir, "maps.npy"), ids...); !slices.Equal(got, want) {
		t.Errorf("stack: %v, want %v", got, want)
	}
}

// TestExternalSources: an item's result depends on its own file in a folder, and on its place in a stack.
func TestExternalSources(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.npy"), flat(1))
	write(t, filepath.Join(dir, "b.npy"), flat(2))
	s, err := externalSources(dir, []string{"b.png", "a"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []stages.Source{{ID: "b.png", File: filepath.Join(dir, "b.npy")},
		{ID: "a", File: filepath.Join(dir, "a.npy")}} {
		if s[i] != want {
			t.Errorf("source %d is %+v, want %+v", i, s[i], want)
		}
	}
	path := filepath.Join(dir, "stack.npy")
	write(t, path, golden.NPY(stages.NewTensor(make([]float32, 12), 2, 2, 3)))
	s, err = externalSources(path, []string{"b", "a"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (stages.Source{ID: "a", File: path, Note: "1"}); s[1] != want {
		t.Errorf("source 1 is %+v, want %+v", s[1], want)
	}
}

func TestExternalShapes(t *testing.T) {
	channels := []float64{1, 1, 1, 1, 1, 1, -3, -3, -3, -3, -3, 1e-17}
	for _, c := range []struct {
		t      stages.Tensor
		reduce metric.Reduction
		shape  []int
		dtype  stages.DType
		first  float64
	}{
		{stages.NewTensor(channels, 2, 2, 3), "sum", []int{2, 3}, stages.F64, -2},
		{stages.NewTensor(channels, 1, 2, 2, 3), "abs-sum", []int{2, 3}, stages.F64, 2},
		{stages.NewTensor(channels, 2, 2, 3), "sum-abs", []int{2, 3}, stages.F64, 4},
		{stages.NewTensor(channels, 2, 2, 3), "none", []int{2, 2, 3}, stages.F64, 1},
		{stages.NewTensor(make([]uint8, 6), 1, 1, 2, 3), "sum", []int{2, 3}, stages.F32, 0},
		{stages.NewTensor([]int64{-5, 0, 0, 0, 0, 0}, 2, 3), "abs-sum", []int{2, 3}, stages.F32, 5},
		{stages.NewTensor([]float32{7, 0, 0, 0, 0, 0}, 1, 2, 3), "none", []int{1, 2, 3}, stages.F32, 7},
	} {
		p := ExternalParams{Common: common()}
		p.Reduce = c.reduce
		a, err := npy.Decode(golden.NPY(c.t))
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.newMap(a, 2, 3)
		if err != nil {
			t.Errorf("%v, %s: %v", c.t.Shape, c.reduce, err)
			continue
		}
		if m.DType != c.dtype || !slices.Equal(m.Shape, c.shape) || m.Float64s()[0] != c.first {
			t.Errorf("%v, %s: %s %v beginning with %v, want %s %v with %v", c.t.Shape, c.reduce, m.DType,
				m.Shape, m.Float64s()[0], c.dtype, c.shape, c.first)
		}
	}
}

// TestExternalTexts checks that a map of a text has one value for each token, or channels of such rows, and
// that another length is told of with the item.
func TestExternalTexts(t *testing.T) {
	dir := t.TempDir()
	tokens := func(n int) []byte { return stages.NewTensor(make([]int64, 3*n), 3, n).Encode() }
	in := named("a", "b")
	in["images"][0].Load = func(i int) ([]byte, error) { return tokens(2 + i), nil }
	p := External.NewParams().(*ExternalParams)
	p.Path = dir
	array := func(shape ...int) []byte {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return golden.NPY(stages.NewTensor(slices.Repeat([]float32{1}, n), shape...))
	}
	write(t, filepath.Join(dir, "a.npy"), array(2))
	for _, shape := range [][]int{{3}, {1, 3}, {1, 1, 3}, {1, 1, 1, 3}, {4, 1, 3}} {
		write(t, filepath.Join(dir, "b.npy"), array(shape...))
		for i, b := range stagetest.Run(t, External, p, in).Payloads["maps"] {
			m, err := stages.DecodeTensor(b)
			want := float64(1)
			if i == 1 && shape[0] == 4 {
				want = 4
			}
			if err != nil || !slices.Equal(m.Shape, []int{1, 2 + i}) || m.Float64s()[0] != want {
				t.Errorf("%v: text %d has a map of %v, %v", shape, i, m.Shape, err)
			}
		}
	}
	for _, shape := range [][]int{{2}, {4}, {1, 2}, {3, 1}, {3, 3}, {2, 3, 3}} {
		write(t, filepath.Join(dir, "b.npy"), array(shape...))
		want := fmt.Sprintf("a map of shape %v doesn't fit a text of 3 tokens", shape)
		_, err := stagetest.Try(External, p, in)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `item "b"`) {
			t.Errorf("%v: %v", shape, err)
		}
	}
}

func TestExternalRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("folder/a.npy"), flat(1))
	write(t, path("transposed/a.npy"), golden.NPY(stages.NewTensor(make([]float32, 18), 2, 3, 3)))
	write(t, path("small/a.npy"), golden.NPY(stages.NewTensor(make([]float32, 4), 2, 2)))
	write(t, path("torn/a.npy"), flat(1)[:100])
	write(t, path("stack.npy"), golden.NPY(stages.NewTensor(make([]float32, 12), 2, 2, 3)))
	write(t, path("text.npz"), []byte("not an archive"))
	archive(t, path("maps.npz"), map[string][]byte{"a": flat(1)})
	archive(t, path("more.npz"), map[string][]byte{"a": append(flat(1), make([]byte, 1<<20)...)})
	if err := syscall.Mkfifo(path("pipe.npz"), 0o600); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		path string
		ids  []string
		part string
	}{
		{"none", []string{"a"}, "none"},
		{"folder", []string{"a", "b.png", "c"},
			`no map of 2 of 3 items: item "b.png" would be b.png.npy or b.npy`},
		{"folder", []string{"a.png", "a.jpg"}, `the map "a" would be both of item "a.png" and of "a.jpg"`},
		{"folder", []string{"../folder/a"}, "outside the folder"},
		{"transposed", []string{"a"},
			`item "a": ` + path("transposed/a.npy") +
				": a map of shape [2 3 3] doesn't fit an image of 2×3 pixels; channels come first"},
		{"small", []string{"a"}, "a map of shape [2 2] doesn't fit"},
		{"torn", []string{"a"}, `item "a": ` + path("torn/a.npy")},
		{"stack.npy", []string{"a", "b", "c"}, "holds 2 maps for 3 items"},
		{"text.npz", []string{"a"}, "not an .npz archive"},
		{"more.npz", []string{"a"}, "more bytes follow the array"},
		{"pipe.npz", []string{"a"}, "a pipe, not a regular file"},
		{"maps.npz", []string{"z"}, `item "z" would be z.npy`},
	} {
		p := External.NewParams().(*ExternalParams)
		p.Path = path(c.path)
		if _, err := stagetest.Try(External, p, named(c.ids...)); err == nil ||
			!strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: error %v, want one with %q", c.path, err, c.part)
		}
	}
	if err := (ExternalParams{Common: common()}).Validate(); err == nil {
		t.Error("no path is accepted")
	}
}

func TestExternalWarnsOfNaN(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.npy"), golden.NPY(stages.NewTensor([]float64{math.NaN(), 1, 1, 1, 1,
		math.NaN()}, 2, 3)))
	p := External.NewParams().(*ExternalParams)
	p.Path = dir
	r := stagetest.Run(t, External, p, named("a"))
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "2 of 6 values") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

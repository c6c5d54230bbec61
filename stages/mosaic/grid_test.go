package mosaic

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

const height, width = 3, 2

// photo returns image i: its pixels encode i and their position.
func photo(i int) []byte {
	v := make([]byte, 3*height*width)
	for k := range v {
		v[k] = byte(i*len(v) + k)
	}
	return stages.NewTensor(v, 3, height, width).Encode()
}

func class(c int64) []byte { return stages.NewTensor([]int64{c}, 1).Encode() }

// set returns the ports of images with the given classes.
func set(classes ...int64) map[string][]stages.Data {
	var images, labels [][]byte
	for i, c := range classes {
		images, labels = append(images, photo(i)), append(labels, class(c))
	}
	return map[string][]stages.Data{"images": {stagetest.Items(nil, images...)},
		"labels": {stagetest.Items(nil, labels...)}}
}

// turns returns count classes, cycling through 0 to of-1.
func turns(count, of int) []int64 {
	out := make([]int64, count)
	for i := range out {
		out[i] = int64(i % of)
	}
	return out
}

// A result is an item of the stage's output.
type result struct {
	id, origin string
	image      stages.Tensor
	class      int64
	box        []float32
}

func run(t *testing.T, p GridParams, in map[string][]stages.Data, seed uint64) (out []result, e *stages.Env) {
	t.Helper()
	e, err := stagetest.Env(&Grid, in)
	if err != nil {
		t.Fatal(err)
	}
	e.Seed = seed
	if err := Grid.Run(t.Context(), &p, e); err != nil {
		t.Fatal(err)
	}
	for _, o := range e.Outputs {
		v, err := stages.DecodeTensor(o.Data)
		if err != nil {
			t.Fatal(err)
		}
		if o.Port == "images" {
			out = append(out, result{id: o.ID, origin: o.Origin, image: v})
			continue
		}
		last := &out[len(out)-1]
		if o.ID != last.id || o.Origin != last.origin {
			t.Errorf("port %s has the item %q of %q and %q of %q", o.Port, o.ID, o.Origin, last.id,
				last.origin)
		}
		if o.Port == "targets" {
			last.class = v.Int64s()[0]
		} else {
			last.box = v.Float32s()
		}
	}
	return out, e
}

// members identifies the images in a grid made of photo, by their pixels.
func members(t *testing.T, grid stages.Tensor, n int) []int {
	t.Helper()
	if !slices.Equal(grid.Shape, []int{3, n * height, n * width}) {
		t.Fatalf("a grid of shape %v", grid.Shape)
	}
	var found []int
	for k := range n * n {
		top, left := k/n*height, k%n*width
		first := int(grid.Raw[top*n*width+left]) / (3 * height * width)
		want := photo(first)[2+4*3:]
		for c := range 3 {
			for y := range height {
				for x := range width {
					got := grid.Raw[(c*n*height+top+y)*n*width+left+x]
					if got != want[(c*height+y)*width+x] {
						t.Fatalf("cell %d isn't image %d at channel %d, row %d, column %d", k, first, c, y, x)
					}
				}
			}
		}
		found = append(found, first)
	}
	return found
}

func TestGrid(t *testing.T) {
	classes := []int64{4, 0, 1, 2, 3, 1, 4, 0, 2, 3, 1, 2, 7}
	for _, p := range []GridParams{
		{N: 2, Classes: "distinct", Explain: "every"},
		{N: 2, Classes: "distinct", Explain: "corners"},
		{N: 2, Classes: "corners-repeat", Explain: "corners"},
		{N: 2, Classes: "corners-repeat", Explain: "every"},
		{N: 2, Classes: "corners-repeat", Explain: "first"},
	} {
		t.Run(p.Classes+" "+p.Explain, func(t *testing.T) {
			out, e := run(t, p, set(classes...), 5)
			if d := cmp.Diff(stages.Facts{"height": "6", "width": "4", "grid": "2"},
				e.OutFacts["cells"]); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(stages.Facts{"height": "6", "width": "4"}, e.OutFacts["images"]); d != "" {
				t.Error(d)
			}
			explained := []int{0, 1, 2, 3}
			if p.Explain == "corners" {
				explained = []int{0, 3}
			} else if p.Explain == "first" {
				explained = []int{0}
			}
			if len(out) != 3*len(explained) {
				t.Fatalf("%d items, want those of 3 grids", len(out))
			}
			used := map[int]bool{}
			for i, r := range out {
				grid, k := i/len(explained), explained[i%len(explained)]
				in := members(t, r.image, 2)
				if want := fmt.Sprintf("grid-%04d/cell-%d", grid, k); r.id != want {
					t.Errorf("item %q, want %q", r.id, want)
				}
				if want := fmt.Sprintf("item-%d", in[k]); r.origin != want {
					t.Errorf("%s: origin %q, want %q", r.id, r.origin, want)
				}
				if r.class != classes[in[k]] {
					t.Errorf("%s: class %d, want %d", r.id, r.class, classes[in[k]])
				}
				left, top := float32(k%2*width), float32(k/2*height)
				if want := []float32{left, top, left + width, top + height}; !slices.Equal(r.box, want) {
					t.Errorf("%s: box %v, want %v", r.id, r.box, want)
				}
				if i%len(explained) > 0 {
					continue
				}
				differ := map[int64]bool{}
				for _, image := range in {
					if used[image] {
						t.Errorf("image %d is in two cells", image)
					}
					used[image] = true
					differ[classes[image]] = true
				}
				want := 4
				if p.Classes == "corners-repeat" {
					want = 3
					if classes[in[0]] != classes[in[3]] {
						t.Errorf("%s: the corners have the classes %d and %d", r.id, classes[in[0]],
							classes[in[3]])
					}
				}
				if len(differ) != want {
					t.Errorf("%s: images %v have %d classes, want %d", r.id, in, len(differ), want)
				}
			}
		})
	}
}

// TestGridTurns checks that no class is used a second time before all have been used once.
func TestGridTurns(t *testing.T) {
	for n := range uint64(5) {
		out, _ := run(t, GridParams{N: 2, Classes: "distinct", Explain: "every"}, set(turns(80, 10)...), n)
		if len(out) != 80 {
			t.Fatalf("%d of 80 images are explained", len(out))
		}
		count := make([]int, 10)
		for _, r := range out {
			count[r.class]++
			if least, most := slices.Min(count), slices.Max(count); most > least+2 {
				t.Fatalf("after %s: classes had %v turns", r.id, count)
			}
		}
	}
}

func TestGridIsRandomFromTheSeed(t *testing.T) {
	p := GridParams{N: 2, Classes: "distinct", Explain: "every", Count: 4}
	in := set(turns(60, 12)...)
	order := func(seed uint64) string {
		out, _ := run(t, p, in, seed)
		var b strings.Builder
		for _, r := range out {
			fmt.Fprintln(&b, r.id, r.origin)
		}
		return b.String()
	}
	first, again := order(1), order(1)
	if first != again {
		t.Error("the same seed gives other grids")
	}
	if first == order(2) {
		t.Error("another seed gives the same grids")
	}
}

// TestGridTellsGuessesApart checks that with labels and targets only images on which they agree are used, and
// that either of them alone defines the class.
func TestGridTellsGuessesApart(t *testing.T) {
	in := set(0, 1, 2, 3, 0, 1)
	in["targets"] = set(3, 1, 2, 3, 0, 0)["labels"] // images 0 and 5 are misclassified
	p := GridParams{N: 2, Classes: "distinct", Explain: "every"}
	out, _ := run(t, p, in, 1)
	got := members(t, out[0].image, 2)
	slices.Sort(got)
	if len(out) != 4 || !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("%d items of the images %v", len(out), got)
	}
	in["labels"] = in["targets"]
	want, _ := run(t, p, in, 1)
	delete(in, "labels")
	alone, _ := run(t, p, in, 1)
	for i := range want {
		if !bytes.Equal(alone[i].image.Raw, want[i].image.Raw) || alone[i].class != want[i].class {
			t.Errorf("%s: targets alone give another grid than both ports", want[i].id)
		}
	}
}

func TestGridCount(t *testing.T) {
	r := stagetest.Run(t, Grid, &GridParams{N: 2, Classes: "distinct", Explain: "every", Count: 1},
		set(turns(12, 4)...))
	if n := len(r.Payloads["images"]); n != 4 || r.Warnings != nil {
		t.Errorf("%d items and warnings %q", n, r.Warnings)
	}
	r = stagetest.Run(t, Grid, &GridParams{N: 2, Classes: "distinct", Explain: "every", Count: 9},
		set(turns(12, 4)...))
	if d := cmp.Diff([]string{"3 grids instead of 9: the images are used up"}, r.Warnings); d != "" {
		t.Error(d)
	}
}

func TestGridRefuses(t *testing.T) {
	p := GridParams{N: 2, Classes: "distinct", Explain: "every"}
	if Grid.Check(&p, func(string) bool { return false }) == nil {
		t.Error("classes may be unknown")
	}
	try := func(name, want string, p GridParams, in map[string][]stages.Data) {
		t.Helper()
		if _, err := stagetest.Try(Grid, &p, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	try("three classes", "there are 6 images of 3 classes, a grid needs 4 classes", p,
		set(0, 1, 2, 0, 1, 2))
	try("no pair", "a grid needs 3 classes, one of them with two images",
		GridParams{N: 2, Classes: "corners-repeat", Explain: "every"}, set(0, 1, 2, 3))

	in := set(0, 1, 2, 3)
	in["labels"] = []stages.Data{stagetest.Items(nil, class(0), class(1))}
	try("a label is missing", `item "item-2": port labels has no item for it`, p, in)
	in["labels"] = []stages.Data{stagetest.Items(nil, class(0), class(1), class(-2), class(3))}
	try("no class", `item "item-2": port labels: -2 isn't a class`, p, in)
	pair := stages.NewTensor([]int64{1, 2}, 2).Encode()
	in["labels"] = []stages.Data{stagetest.Items(nil, class(0), pair, class(2), class(3))}
	try("two classes", "port labels: item \"item-1\": i64 of shape [2] isn't one class", p, in)

	for want, odd := range map[string]stages.Tensor{
		"differ in shape":                  stages.NewTensor(make([]byte, 12), 3, 2, 2),
		"differ in type":                   stages.NewTensor(make([]float32, 18), 3, height, width),
		"is not [channels, height, width]": stages.NewTensor(make([]byte, 6), height, width),
	} {
		in = set(0, 1, 2, 3)
		in["images"] = []stages.Data{stagetest.Items(nil, photo(0), odd.Encode(), photo(2), photo(3))}
		try(want, want, p, in)
	}
}

package dataset

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestShapesFrozen freezes the pixels: the nets were trained on them, and all published numbers of the
// quickstart depend on them.
func TestShapesFrozen(t *testing.T) {
	const golden = "testdata/shapes.golden"
	var got strings.Builder
	for _, p := range []ShapesParams{
		{Count: 24, Size: 64, Seed: 1, Domain: "a"},
		{Count: 24, Size: 64, Seed: 1, Domain: "b"},
		{Count: 12, Size: 64, Seed: 1000000, Domain: "a"},
		{Count: 12, Size: 64, Seed: 1000000, Domain: "b"},
		{Count: 6, First: 123456, Size: 64, Seed: 7, Domain: "a"},
		{Count: 6, First: 123456, Size: 64, Seed: 7, Domain: "b"},
		{Count: 4, Size: 32, Seed: 2, Domain: "a"},
		{Count: 4, Size: 33, Seed: 2, Domain: "b"},
		{Count: 4, Size: 224, Seed: 3, Domain: "a"},
		{Count: 4, Size: 224, Seed: 3, Domain: "b"},
		{Count: 2, Size: 16, Seed: 0, Domain: "a"},
		{Count: 1, Size: 1024, Seed: 1000000000, Domain: "b"},
		{Count: 24, Size: 64, Seed: 1, Domain: "c"},
		{Count: 12, Size: 64, Seed: 1000000, Domain: "c"},
		{Count: 4, Size: 33, Seed: 2, Domain: "c"},
		{Count: 4, Size: 224, Seed: 3, Domain: "c"},
	} {
		r := stagetest.Run(t, Shapes, &p, nil)
		fmt.Fprintf(&got, "domain=%s seed=%d size=%d first=%d count=%d\n", p.Domain, p.Seed, p.Size, p.First,
			p.Count)
		for _, port := range []string{"images", "labels", "masks"} {
			fmt.Fprintf(&got, "  %s %x\n", port, sha256.Sum256(bytes.Join(r.Payloads[port], nil)))
		}
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("the pixels of dataset/shapes moved, though nets were trained on them (-want +got):\n%s", d)
	}
}

// TestShapesLayout checks the types and shapes of the ports.
func TestShapesLayout(t *testing.T) {
	p := ShapesParams{Count: 3, First: 5, Size: 48, Seed: 9, Domain: "b"}
	r := stagetest.Run(t, Shapes, &p, nil)
	for port, want := range map[string]struct {
		dtype stages.DType
		shape []int
	}{"images": {stages.U8, []int{3, 48, 48}}, "labels": {stages.I64, []int{1}},
		"masks": {stages.U8, []int{48, 48}}} {
		if len(r.Payloads[port]) != p.Count {
			t.Fatalf("%s: %d payloads for %d draws", port, len(r.Payloads[port]), p.Count)
		}
		x, err := stages.DecodeTensor(r.Payloads[port][0])
		if err != nil || x.DType != want.dtype || !slices.Equal(x.Shape, want.shape) {
			t.Errorf("%s: %s %v, %v; want %s %v", port, x.DType, x.Shape, err, want.dtype, want.shape)
		}
		if f := r.Facts[port]; f["height"] != "48" || f["width"] != "48" || f["classes"] != "12" ||
			len(strings.Split(f["labels"], "\n")) != 12 {
			t.Errorf("%s: facts %v", port, f)
		}
	}
	sources, err := Shapes.Sources(&p, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := stages.Source{ID: "b-000006", Note: "domain=b seed=9 size=48 index=6"}
	if sources[1] != want {
		t.Errorf("the second source is %+v, want %+v", sources[1], want)
	}
}

// TestShapesStable checks that a draw depends on its number alone, not on the other draws of the experiment.
func TestShapesStable(t *testing.T) {
	all := stagetest.Run(t, Shapes, &ShapesParams{Count: 30, Size: 32, Seed: 4, Domain: "a"}, nil)
	some := stagetest.Run(t, Shapes, &ShapesParams{Count: 5, First: 20, Size: 32, Seed: 4, Domain: "a"}, nil)
	for port, payloads := range some.Payloads {
		for i, b := range payloads {
			if !bytes.Equal(b, all.Payloads[port][20+i]) {
				t.Errorf("%s of draw %d differ when draws 0 to 19 aren't wanted", port, 20+i)
			}
		}
	}
}

// TestShapesDomains checks that the domains render the same scenes differently, and that seeds and draws
// differ.
func TestShapesDomains(t *testing.T) {
	run := func(seed int, domain string) stagetest.Result {
		return stagetest.Run(t, Shapes, &ShapesParams{Count: 24, Size: 64, Seed: seed, Domain: domain}, nil)
	}
	a, b, c, other := run(1, "a"), run(1, "b"), run(1, "c"), run(2, "a")
	seen := map[string]bool{}
	for i := range 24 {
		if !bytes.Equal(a.Payloads["masks"][i], b.Payloads["masks"][i]) ||
			!bytes.Equal(a.Payloads["labels"][i], b.Payloads["labels"][i]) {
			t.Errorf("draw %d is another scene in domain b", i)
		}
		if !bytes.Equal(a.Payloads["masks"][i], c.Payloads["masks"][i]) ||
			!bytes.Equal(a.Payloads["labels"][i], c.Payloads["labels"][i]) {
			t.Errorf("draw %d is another scene in domain c", i)
		}
		for _, r := range []stagetest.Result{a, b, c, other} {
			seen[string(r.Payloads["images"][i])] = true
		}
		if x, y := brightness(t, a.Payloads["images"][i]), brightness(t, b.Payloads["images"][i]); x < y+30 {
			t.Errorf("draw %d has mean value %.0f in domain a, %.0f in b: not two looks", i, x, y)
		}
	}
	if len(seen) != 4*24 {
		t.Errorf("%d of %d pictures are unique", len(seen), 4*24)
	}
}

func brightness(t *testing.T, image []byte) float64 {
	x, err := stages.DecodeTensor(image)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, v := range x.Raw {
		sum += int(v)
	}
	return float64(sum) / float64(len(x.Raw))
}

// TestShapesBalance checks that every aligned block of twelve draws contains each class.
func TestShapesBalance(t *testing.T) {
	orders := map[string]bool{}
	for block := range 200 {
		var labels []int
		for i := range classCount {
			labels = append(labels, labelOf(3, block*classCount+i))
		}
		orders[fmt.Sprint(labels)] = true
		slices.Sort(labels)
		for i, l := range labels {
			if l != i {
				t.Fatalf("draws %d to %d have the classes %v", block*classCount, block*classCount+11, labels)
			}
		}
	}
	if len(orders) < 199 {
		t.Errorf("only %d orders in 200 dozens", len(orders))
	}
}

// TestShapesMasks checks that objects are neither tiny nor clipped, and that all outlines have about the same
// area, so that size doesn't reveal the class.
func TestShapesMasks(t *testing.T) {
	const size, n = 64, 1200
	var mean [shapeCount]float64
	for i := range n {
		s := newScene(11, i)
		_, masks := paint([]scene{s}, "a", 11, i, size)
		area := 0
		for k, m := range masks[0] {
			area += int(m)
			if x, y := k%size, k/size; m == 1 && (x == 0 || y == 0 || x == size-1 || y == size-1) {
				t.Fatalf("draw %d, a %s, touches the border", i, className(s.label))
			}
		}
		if area < 250 || area > 1500 {
			t.Errorf("draw %d, a %s, covers %d of 4096 pixels", i, className(s.label), area)
		}
		mean[s.shape] += float64(area) / (n / float64(shapeCount))
	}
	for k, m := range mean {
		if m < 0.85*mean[disc] || m > 1.15*mean[disc] {
			t.Errorf("a %s covers %.0f pixels on average, a disc %.0f", shapeNames[k], m, mean[disc])
		}
	}
}

// TestShapesReach checks that no outline extends beyond reach, which bounds what paint draws.
func TestShapesReach(t *testing.T) {
	for i := range 240 {
		s := newScene(12, i)
		reach := s.reach()
		for k := -reach - 2*unit; k <= reach+2*unit; k += unit / 2 {
			for _, at := range [][2]int64{{k, reach + unit}, {k, -reach - unit}, {reach + unit, k},
				{-reach - unit, k}} {
				if s.outside(at[0], at[1]) < 0 {
					t.Fatalf("draw %d, a %s of radius %d, extends beyond %d", i, className(s.label), s.radius,
						reach)
				}
			}
		}
	}
}

// TestShapesOfTwoObjects checks that the two items of a draw have the same image, two classes, and masks that
// don't touch.
func TestShapesOfTwoObjects(t *testing.T) {
	const size, n = 64, 240
	p := &ShapesParams{Count: n, Size: size, Seed: 11, Domain: "b", Objects: 2}
	r := stagetest.Run(t, Shapes, p, nil)
	sources, err := Shapes.Sources(p, nil)
	if err != nil || len(sources) != 2*n || len(r.Payloads["images"]) != 2*n ||
		sources[1].ID != "b-000000/2" {
		t.Fatalf("%d sources of %d images: %v", len(sources), len(r.Payloads["images"]), err)
	}
	for i := 0; i < 2*n; i += 2 {
		if !bytes.Equal(r.Payloads["images"][i], r.Payloads["images"][i+1]) {
			t.Errorf("%s and %s are two images", sources[i].ID, sources[i+1].ID)
		}
		if bytes.Equal(r.Payloads["labels"][i], r.Payloads["labels"][i+1]) {
			t.Errorf("%s has one class twice", sources[i].ID)
		}
		first, err1 := stages.DecodeTensor(r.Payloads["masks"][i])
		second, err2 := stages.DecodeTensor(r.Payloads["masks"][i+1])
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		areas := [2]int{}
		for k := range size * size {
			areas[0] += int(first.Raw[k])
			areas[1] += int(second.Raw[k])
			if first.Raw[k] == 1 && (second.Raw[k] == 1 || second.Raw[max(k-1, 0)] == 1 ||
				second.Raw[min(k+1, size*size-1)] == 1) {
				t.Fatalf("the objects of %s touch", sources[i].ID)
			}
		}
		if min(areas[0], areas[1]) < 250 {
			t.Errorf("the objects of %s cover %v pixels", sources[i].ID, areas)
		}
	}
}

func BenchmarkShapes(b *testing.B) {
	for _, domain := range []string{"a", "b", "c"} {
		b.Run(domain, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				s := newScene(1, i)
				paint([]scene{s}, domain, 1, i, 64)
			}
		})
	}
}

package mosaic

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// focused runs the stage and returns what it put on its ports.
func focused(t *testing.T, p FocusParams, in map[string][]stages.Data, seed uint64) *stages.Env {
	t.Helper()
	e, err := stagetest.Env(&Focus, in)
	if err != nil {
		t.Fatal(err)
	}
	e.Seed = seed
	if err := Focus.Run(t.Context(), &p, e); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestFocusMosaics: two different images of the class, which the mask marks, and two different ones of
// others; images of the class have their turns, and places are all of the six pairs.
func TestFocusMosaics(t *testing.T) {
	classes := []int64{4, 0, 1, 4, 0, 1, 4, 2, 4}
	e := focused(t, FocusParams{Count: 30, Size: "full", Heads: true}, set(classes...), 5)
	pairs := map[[2]int]bool{}
	turns := map[int]int{}
	var last []int
	for _, o := range e.Outputs {
		v, err := stages.DecodeTensor(o.Data)
		if err != nil {
			t.Fatal(err)
		}
		switch o.Port {
		case "images":
			last = members(t, v, 2)
			if s := slices.Compact(slices.Sorted(slices.Values(last))); len(s) != 4 {
				t.Fatalf("%s has the images %v", o.ID, last)
			}
		case "targets":
			head := int(v.Int64s()[2])
			c := v.Int64s()[0]
			if classes[last[head]] != c || !strings.HasPrefix(o.ID, "class-000"+string('0'+rune(c))) {
				t.Errorf("%s: target %v of images %v", o.ID, v.Int64s(), last)
			}
			if want := "item-" + string('0'+rune(last[head])); o.Origin != want {
				t.Errorf("%s: origin %q, want %q", o.ID, o.Origin, want)
			}
		case "masks":
			class := int64(o.ID[len("class-000")] - '0')
			var on []int
			for q, i := range last {
				marked := v.Raw[(q/2*height)*2*width+q%2*width] == 1
				if marked != (classes[i] == class) {
					t.Errorf("%s: quadrant %d of class %d is marked: %v", o.ID, q, classes[i], marked)
				}
				if marked {
					on, turns[i] = append(on, q), turns[i]+1
				}
			}
			pairs[[2]int(on)] = true
		}
	}
	if len(e.Outputs) != 3*30*3 || len(pairs) != 6 {
		t.Errorf("%d outputs, pairs %v", len(e.Outputs), pairs)
	}
	for i, n := range turns {
		if want := map[int64]int{0: 30, 1: 30, 4: 15}[classes[i]]; n != want {
			t.Errorf("image %d of class %d has %d turns, want %d", i, classes[i], n, want)
		}
	}
	if f := e.OutFacts["masks"]; f["height"] != "6" || f["width"] != "4" {
		t.Error(f)
	}
}

// TestFocusClassesAreApart: the places and the images of a class don't depend on the number of mosaics, and
// another seed gives others.
func TestFocusClassesAreApart(t *testing.T) {
	in := set(4, 0, 1, 4, 0, 1, 4, 2, 4)
	few := focused(t, FocusParams{Count: 2, Size: "full"}, in, 1).Outputs
	for _, o := range few {
		same := func(other stages.Output) bool {
			return other.ID == o.ID && other.Port == o.Port && string(other.Data) == string(o.Data)
		}
		if !slices.ContainsFunc(focused(t, FocusParams{Count: 3, Size: "full"}, in, 1).Outputs, same) {
			t.Errorf("%s of %s differs among more", o.Port, o.ID)
		}
	}
	other := focused(t, FocusParams{Count: 2, Size: "full"}, in, 2).Outputs
	if string(other[0].Data)+string(other[3].Data) == string(few[0].Data)+string(few[3].Data) {
		t.Error("another seed gives the same mosaics")
	}
}

func TestHalved(t *testing.T) {
	x, err := halved(stages.NewTensor([]uint8{0, 1, 4, 4, 1, 0, 4, 6, 255, 255, 1, 0, 255, 254, 2, 3},
		1, 4, 4))
	if err != nil || !slices.Equal(x.Raw, []uint8{0, 4, 255, 2}) || !slices.Equal(x.Shape, []int{1, 2, 2}) {
		t.Errorf("%v %v, %v", x.Shape, x.Raw, err)
	}
	y, err := halved(stages.NewTensor([]float32{0, 1, 2, 4}, 1, 2, 2))
	if err != nil || math.Abs(y.Float64s()[0]-1.75) > 0 {
		t.Errorf("%v, %v", y.Float64s(), err)
	}
	if _, err := halved(stages.NewTensor(make([]uint8, 6), 1, 3, 2)); err == nil {
		t.Error("three rows are halved")
	}
}

func TestFocusNeedsTwoAndTwo(t *testing.T) {
	e, err := stagetest.Env(&Focus, set(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	err = Focus.Run(t.Context(), &FocusParams{Count: 1, Size: "full"}, e)
	if err == nil || !strings.Contains(err.Error(), "3 images of 2 classes, a mosaic needs two of a class") {
		t.Error(err)
	}
}

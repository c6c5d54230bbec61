package score

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// populated runs a score of a population on maps of height 1, or rows of width pixels.
func populated(t *testing.T, s stages.Stage, params any, maps [][]float64, width int,
	classes []int64) (scores, alike []float64) {
	t.Helper()
	var m, targets [][]byte
	for i, v := range maps {
		m = append(m, stages.NewTensor(v, len(v)/width, width).Encode())
		targets = append(targets, stages.NewTensor(classes[i:i+1], 1).Encode())
	}
	r := stagetest.Run(t, s, params, map[string][]stages.Data{
		"maps": {stagetest.Items(nil, m...)}, "targets": {stagetest.Items(nil, targets...)}})
	return scalars(t, stagetest.Items(nil, r.Payloads["scores"]...)),
		scalars(t, stagetest.Items(nil, r.Payloads["alike"]...))
}

// TestGoldenPopulation compares with Quantus 0.6.0, which gives 0 where no other image is alike, here NaN. It
// divides by 1e-9 more than the number of images with the label.
func TestGoldenPopulation(t *testing.T) {
	b, err := os.ReadFile("testdata/population.json")
	if err != nil {
		t.Fatal(err)
	}
	var peer struct {
		Classes                  []int64
		Maps, Few                [][]float64
		Sufficiency, Consistency map[string][]float64
		Unused, Default          []float64
	}
	if err := json.Unmarshal(b, &peer); err != nil {
		t.Fatal(err)
	}
	compare := func(what string, scores, alike, want []float64) {
		t.Helper()
		if len(scores) != len(want) || len(want) == 0 {
			t.Fatalf("%s: %d scores, want %d", what, len(scores), len(want))
		}
		for i, x := range scores {
			if alike[i] == 0 {
				if !math.IsNaN(x) || want[i] != 0 {
					t.Errorf("%s: nothing is like image %d: %v, and Quantus %v", what, i, x, want[i])
				}
			} else if !(math.Abs(x-want[i]) <= 1e-8) {
				t.Errorf("%s: image %d scores %v, want %v", what, i, x, want[i])
			}
		}
	}
	for threshold, want := range peer.Sufficiency {
		var at float64
		if err := json.Unmarshal([]byte(threshold), &at); err != nil {
			t.Fatal(err)
		}
		scores, alike := populated(t, Sufficiency, &SufficiencyParams{"magnitude", at}, peer.Maps, 5,
			peer.Classes)
		compare("sufficiency at "+threshold, scores, alike, want)
	}
	for label, want := range peer.Consistency {
		scores, alike := populated(t, Consistency, &ConsistencyParams{"signed", 1, label}, peer.Few, 3,
			peer.Classes)
		compare("consistency by "+label, scores, alike, want)
	}
	scores, alike := populated(t, Consistency, &ConsistencyParams{"magnitude", 1, "first-signs"}, peer.Maps,
		5, peer.Classes)
	compare("Quantus' default consistency", scores, alike, peer.Default)
	for i, x := range peer.Default { // the share of the class among the others
		same := -1.0
		for _, c := range peer.Classes {
			if c == peer.Classes[i] {
				same++
			}
		}
		if want := same / float64(len(peer.Classes)-1); math.Abs(x-want) > 1e-8 {
			t.Errorf("image %d: Quantus' default consistency is %v, and the class's share %v", i, x, want)
		}
	}
	// A pixel without relevance in every map: Quantus divides 0 by 0, and has 0 for every image.
	for _, m := range peer.Maps {
		m[19] = 0
	}
	ours, _ := populated(t, Sufficiency, &SufficiencyParams{"magnitude", 1}, peer.Maps, 5, peer.Classes)
	for i, x := range ours {
		if math.Abs(x-peer.Sufficiency["1.0"][i]) > 1e-12 || peer.Unused[i] != 0 {
			t.Errorf("image %d with a pixel that no map uses: ours %v, Quantus %v", i, x, peer.Unused[i])
		}
	}
}

// TestPopulationByHand checks three maps near each other and one far away, a map without relevance, and which
// inputs are refused.
func TestPopulationByHand(t *testing.T) {
	maps := [][]float64{{1, 0.5, 0}, {1, 0.4, 0}, {1, 0.6, 0}, {-0.1, 1, 0}, {0, 0, 0}}
	classes := []int64{1, 1, 2, 1, 1}
	scores, alike := populated(t, Sufficiency, &SufficiencyParams{"signed", 0.5}, maps, 3, classes)
	equalAll(t, "sufficiency", scores, 1./2, 1./2, 0, nan, nan)
	equalAll(t, "alike", alike, 2./4, 2./4, 2./4, 0, nan)
	scores, alike = populated(t, Consistency, &ConsistencyParams{"signed", 1, "signs"}, maps, 3, classes)
	equalAll(t, "consistency", scores, 1./2, 1./2, 0, nan, nan)
	equalAll(t, "alike", alike, 2./4, 2./4, 2./4, 0, nan)
	scores, _ = populated(t, Sufficiency, &SufficiencyParams{"signed", 0},
		[][]float64{{1, 2}, {2, 4}, {3, 6}},
		2, []int64{0, 0, 1})
	equalAll(t, "sufficiency of equal maps", scores, 1./2, 1./2, 0)
	scores, alike = populated(t, Consistency, nil, maps[:1], 3, classes)
	equalAll(t, "a single image", append(scores, alike...), nan, nan)

	one := stagetest.Items(nil, stages.NewTensor([]float64{1}, 1, 1).Encode())
	two := stagetest.Items(nil, stages.NewTensor([]float64{1}, 1, 1).Encode(),
		stages.NewTensor([]float64{1, 2}, 1, 2).Encode())
	class := stages.NewTensor([]int64{1}, 1).Encode()
	for _, s := range []stages.Stage{Sufficiency, Consistency} {
		fails(t, s, nil, map[string][]stages.Data{"maps": {two}, "targets": {stagetest.Items(nil, class)}},
			`item "item-1" has a map and no prediction`)
		fails(t, s, nil, map[string][]stages.Data{"maps": {two},
			"targets": {stagetest.Items(nil, class, class)}},
			`item "item-1": the maps have different sizes`)
		fails(t, s, nil, map[string][]stages.Data{"maps": {one, one},
			"targets": {stagetest.Items(nil, class)}}, "the maps are of 2 cells")
	}
}

func equalAll(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	for i, w := range want {
		if len(got) != len(want) || !equalOrNaN(got[i], w) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

// TestRoundedLabel checks the labels of means that round to the same number, and that −0 is 0.
func TestRoundedLabel(t *testing.T) {
	c := ConsistencyParams{Label: "rounded"}
	for _, same := range [][2][]float64{{{0.499, 1}, {0.501, 1}}, {{-0.001, 1}, {0.001, 1}}} {
		if a, b := c.label(same[0]), c.label(same[1]); a != b {
			t.Errorf("%v has the label %q, and %v %q", same[0], a, same[1], b)
		}
	}
	if a, b := c.label([]float64{0.49}), c.label([]float64{0.5}); a == b {
		t.Errorf("0.49 and 0.5 have the label %q", a)
	}
}

// TestPopulationLaws checks on random maps that their scale and the order of pixels don't matter, and that
// the scores of images move with them when these are reordered.
func TestPopulationLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n, pixels = 24, 12
	maps, classes := make([][]float64, n), make([]int64, n)
	scaled, moved, movedClasses := make([][]float64, n), make([][]float64, n), make([]int64, n)
	order, shuffle := r.Perm(n), r.Perm(pixels)
	for i := range maps {
		maps[i], scaled[i], classes[i] = make([]float64, pixels), make([]float64, pixels), int64(r.IntN(3))
		for k := range maps[i] {
			maps[i][k] = r.NormFloat64() + 3
		}
		for k, from := range shuffle {
			scaled[i][k] = math.Ldexp(maps[i][from], i)
		}
	}
	for k, i := range order {
		moved[k], movedClasses[k] = maps[i], classes[i]
	}
	for _, s := range []struct {
		stage  stages.Stage
		params any
	}{
		{Sufficiency, &SufficiencyParams{"magnitude", 0.7}},
		{Consistency, &ConsistencyParams{"signed", 12, "rounded"}},
	} {
		scores, _ := populated(t, s.stage, s.params, maps, 1, classes)
		again, _ := populated(t, s.stage, s.params, scaled, 1, classes)
		other, _ := populated(t, s.stage, s.params, moved, 1, movedClasses)
		for k, i := range order {
			if !equalOrNaN(scores[i], again[i]) || !equalOrNaN(scores[i], other[k]) {
				t.Errorf("%s: image %d scores %v, scaled %v, elsewhere %v", s.stage.Name, i, scores[i],
					again[i], other[k])
			}
		}
	}
}

// TestPairs checks that every pair of maps has its distance once, however many maps are read at a time.
func TestPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	const n = 11
	var maps [][]byte
	p := &population{values: "signed", items: make([]stages.Item, n)}
	for i := range n {
		v := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		if i == 4 {
			v = []float64{0, 0, 0} // not defined
		}
		maps = append(maps, stages.NewTensor(v, 1, 3).Encode())
	}
	p.maps = stagetest.Items(nil, maps...)
	weights, defined, err := p.precisions(t.Context())
	if err != nil || defined[4] || !defined[5] {
		t.Fatal(defined, err)
	}
	all := map[[2]int]float64{}
	for block := range 13 {
		p.block = block
		seen := 0
		err := p.pairs(t.Context(), weights, func(i, k int, d float64) {
			seen++
			if was, known := all[[2]int{i, k}]; known && was != d || i >= k || i == 4 || k == 4 {
				t.Errorf("blocks of %d: the distance of %d and %d is %v, was %v", block, i, k, d, was)
			}
			all[[2]int{i, k}] = d
		})
		if err != nil || seen != 45 || len(all) != 45 {
			t.Errorf("blocks of %d: %d of %d pairs, %v", block, seen, len(all), err)
		}
	}
}

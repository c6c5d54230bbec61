package maps

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestRank(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name   string
		values string
		in     stages.Tensor
		want   []uint32
		warns  bool
	}{
		{"descending", "signed", stages.NewTensor([]float32{1, 4, 2, 3}, 2, 2), []uint32{3, 0, 2, 1}, false},
		{"ties keep their order", "signed", stages.NewTensor([]float32{1, 1, 2, 1}, 2, 2),
			[]uint32{1, 2, 0, 3}, false},
		{"signs", "signed", stages.NewTensor([]float64{-9, 1, 2, 3}, 2, 2), []uint32{3, 2, 1, 0}, false},
		{"magnitude", "magnitude", stages.NewTensor([]float64{-9, 1, 2, 3}, 2, 2), []uint32{0, 3, 2, 1},
			false},
		{"the channels' sum, not the sum of magnitudes", "magnitude",
			stages.NewTensor([]float64{-9, 1, 9, 3}, 2, 1, 2), []uint32{1, 0}, false},
		{"not a number", "signed", stages.NewTensor([]float64{3, -1, nan, 1}, 2, 2), []uint32{}, true},
		{"infinite", "signed", stages.NewTensor([]float64{math.Inf(-1), -1, math.Inf(1), 5}, 2, 2),
			[]uint32{3, 2, 0, 1}, false},
		{"infinities that cancel", "magnitude", stages.NewTensor([]float64{math.Inf(-1), 1, math.Inf(1), 3},
			2, 1, 2), []uint32{}, true},
		{"constant", "signed", stages.NewTensor([]float64{2, 2, 2, 2}, 2, 2), []uint32{}, true},
		{"constant in size", "magnitude", stages.NewTensor([]float64{2, -2, 2, -2}, 2, 2), []uint32{}, true},
		{"one pixel", "signed", stages.NewTensor([]float64{2}, 1, 1), []uint32{0}, false},
		{"both zeros are equal", "signed", stages.NewTensor([]float64{math.Copysign(0, -1), 0, 1}, 1, 3),
			[]uint32{1, 2, 0}, false},
	}
	for _, tt := range tests {
		r := stagetest.Run(t, Rank, &RankParams{Values: tt.values, Ties: "index"},
			map[string][]stages.Data{"maps": {stagetest.Items(nil, tt.in.Encode())}})
		got, err := stages.DecodeTensor(r.Payloads["ranks"][0])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, got.Uint32s()); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		want := []int{tt.in.Shape[len(tt.in.Shape)-2], tt.in.Shape[len(tt.in.Shape)-1]}
		if len(tt.want) == 0 {
			want = []int{0, 0}
		}
		if !slices.Equal(got.Shape, want) {
			t.Errorf("%s: shape %v, want %v", tt.name, got.Shape, want)
		}
		if (len(r.Warnings) > 0) != tt.warns {
			t.Errorf("%s: warnings %q", tt.name, r.Warnings)
		}
	}
}

// TestRankWarns checks that maps without an order don't stop the others, and give warnings.
func TestRankWarns(t *testing.T) {
	good := stages.NewTensor([]float32{1, 2}, 1, 2).Encode()
	bad := stages.NewTensor([]float32{1, float32(math.NaN())}, 1, 2).Encode()
	for _, tt := range []struct {
		maps [][]byte
		n    int
	}{{[][]byte{good, bad}, 1}, {[][]byte{good, bad, good, bad}, 2}} {
		r := stagetest.Run(t, Rank, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil, tt.maps...)}})
		if len(r.Warnings) != tt.n ||
			!strings.HasPrefix(r.Warnings[0], `item "item-1": its map has pixels that are not numbers`) {
			t.Errorf("warnings %q, want %d", r.Warnings, tt.n)
		}
		if got, err := stages.DecodeTensor(r.Payloads["ranks"][0]); err != nil ||
			!slices.Equal(got.Uint32s(), []uint32{1, 0}) {
			t.Errorf("the good map's ranks are %v, %v", got.Uint32s(), err)
		}
	}
}

func TestRankRefusesVectors(t *testing.T) {
	_, err := stagetest.Try(Rank, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil,
		stages.NewTensor([]float32{1}, 1).Encode())}})
	if err == nil || !strings.Contains(err.Error(), "neither [H,W] nor [C,H,W]") {
		t.Errorf("got %v", err)
	}
}

// TestRankLaws holds rank against a slow definition: a pixel's place is the number of pixels before it.
func TestRankLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		v := make([]float64, 40)
		for i := range v {
			v[i] = float64(r.IntN(9))
		}
		ranks := rank(v, nil, false)
		for i := range v {
			before := 0
			for k := range v {
				if v[k] > v[i] || v[k] == v[i] && k < i {
					before++
				}
			}
			if int(ranks[i]) != before {
				t.Fatalf("pixel %d of %v has place %d, want %d", i, v, ranks[i], before)
			}
		}
		shifted := slices.Clone(v)
		for i := range shifted {
			shifted[i] += 3
		}
		if again := rank(shifted, nil, false); !slices.Equal(ranks, again) {
			t.Fatal("adding a constant changed the order")
		}
	}
}

// TestRankTies checks that ties that are drawn are in any order, the same for equal maps and another for
// others, that nothing else moves, and that a constant map has one.
func TestRankTies(t *testing.T) {
	const n = 64
	values := make([]float32, n)
	values[n-1], values[n-2] = 2, 1
	a, constant := stages.NewTensor(values, 8, 8).Encode(), stages.NewTensor(make([]float32, n), 8,
		8).Encode()
	values[n-2] = 1.5
	b := stages.NewTensor(values, 8, 8).Encode()
	r := stagetest.Run(t, Rank, &RankParams{Values: "signed", Ties: "random"},
		map[string][]stages.Data{"maps": {stagetest.Items(nil, a, b, a, constant)}})
	if len(r.Warnings) > 0 {
		t.Errorf("warnings %q", r.Warnings)
	}
	var ranks [][]uint32
	for _, p := range r.Payloads["ranks"] {
		x, err := stages.DecodeTensor(p)
		if err != nil {
			t.Fatal(err)
		}
		places := slices.Sorted(slices.Values(x.Uint32s()))
		for i, place := range places {
			if int(place) != i {
				t.Fatalf("%v are not the places of %d pixels", places, n)
			}
		}
		ranks = append(ranks, x.Uint32s())
	}
	if ranks[0][n-1] != 0 || ranks[0][n-2] != 1 || slices.IsSorted(ranks[0][:n-2]) {
		t.Errorf("places %v", ranks[0])
	}
	if !slices.Equal(ranks[0], ranks[2]) || slices.Equal(ranks[0], ranks[1]) || slices.IsSorted(ranks[3]) {
		t.Error("equal maps have other orders, or others the same, or a constant one is in order")
	}
}

// TestRankMerged checks that equal pixels share the first of their places, and all those of a constant map.
func TestRankMerged(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   []uint32
	}{
		{[]float64{3, 1, 3, 2, 1, 3}, []uint32{0, 4, 0, 3, 4, 0}},
		{[]float64{7, 7, 7, 7, 7, 7}, []uint32{0, 0, 0, 0, 0, 0}},
		{[]float64{1, 2, 3, 4, 5, 6}, []uint32{5, 4, 3, 2, 1, 0}},
	} {
		m := stages.NewTensor(c.values, 2, 3).Encode()
		r := stagetest.Run(t, Rank, &RankParams{Values: "magnitude", Ties: "merged", Unit: "pixel"},
			map[string][]stages.Data{"maps": {stagetest.Items(nil, m)}})
		got, err := stages.DecodeTensor(r.Payloads["ranks"][0])
		if err != nil || !slices.Equal(got.Uint32s(), c.want) || len(r.Warnings) > 0 {
			t.Errorf("%v: %v, %v, want %v; warnings %q", c.values, got.Uint32s(), err, c.want, r.Warnings)
		}
	}
}

// TestRankUnits checks the places of regions and segments: by the mean of their pixels, and cut off at the
// border.
func TestRankUnits(t *testing.T) {
	m := stages.NewTensor([]float64{
		1, 2, 9,
		3, 4, 0,
		5, 0, 1,
	}, 3, 3)
	labels := stages.NewTensor([]uint8{
		5, 5, 2,
		2, 2, 2,
		9, 9, 9,
	}, 3, 3)
	// The means are 2.5, 4.5, 2.5 and 1 of the regions, and 1.5, 4 and 2 of the segments.
	for unit, want := range map[string][]uint32{
		"region": {
			1, 1, 0,
			1, 1, 0,
			2, 2, 3,
		},
		"segment": {
			2, 2, 0,
			0, 0, 0,
			1, 1, 1,
		},
	} {
		in := map[string][]stages.Data{"maps": {stagetest.Items(nil, m.Encode())}}
		if unit == "segment" {
			in["segments"] = []stages.Data{stagetest.Items(nil, labels.Encode())}
		}
		p := &RankParams{Values: "signed", Ties: "index", Unit: unit, Region: 2}
		got, err := stages.DecodeTensor(stagetest.Run(t, Rank, p, in).Payloads["ranks"][0])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.Uint32s()); d != "" || !slices.Equal(got.Shape, []int{3, 3}) {
			t.Errorf("%s: shape %v, %s", unit, got.Shape, d)
		}
		flat := stages.NewTensor([]float64{7, 7, 7, 7, 7, 7, 7, 7, 7}, 3, 3)
		in["maps"] = []stages.Data{stagetest.Items(nil, flat.Encode())}
		r := stagetest.Run(t, Rank, p, in)
		if none, err := stages.DecodeTensor(r.Payloads["ranks"][0]); err != nil || none.Len() != 0 ||
			len(r.Warnings) != 1 {
			t.Errorf("%s: a constant map has the order %v, warnings %q", unit, none.Uint32s(), r.Warnings)
		}
	}
	in := map[string][]stages.Data{"maps": {stagetest.Items(nil, m.Encode())},
		"segments": {stagetest.Items(nil, stages.NewTensor([]uint8{1, 2}, 1, 2).Encode())}}
	p := &RankParams{Values: "signed", Ties: "index", Unit: "segment"}
	if _, err := stagetest.Try(Rank, p, in); err == nil || !strings.Contains(err.Error(), "3×3 pixels") {
		t.Errorf("error %v of segments of another size", err)
	}
}

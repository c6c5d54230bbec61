package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func sizeTable(n float64) map[string][]stages.Data {
	t := stages.Table{Numbers: []stages.Column{{Name: "images"}},
		Rows: []stages.Row{{Numbers: []stages.Number{stages.Number(n)}}}}
	return map[string][]stages.Data{"size": {stagetest.Value(nil, t.Encode())}}
}

// drawnOf returns which of n images are drawn.
func drawnOf(t *testing.T, n, pilot int, size map[string][]stages.Data) (drawn []int) {
	t.Helper()
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = stages.Scalar(float64(i))
	}
	in := map[string][]stages.Data{"images": {stagetest.Items(nil, payloads...)}}
	if size != nil {
		in["size"] = size["size"]
	}
	for _, b := range stagetest.Run(t, Draw, &DrawParams{Pilot: pilot}, in).Payloads["images"] {
		v, err := stages.ScalarOf(b)
		if err != nil {
			t.Fatal(err)
		}
		drawn = append(drawn, int(v))
	}
	return drawn
}

// TestDraw draws two phases that have no image in common, and together all if they are large enough.
func TestDraw(t *testing.T) {
	pilot, second := drawnOf(t, 100, 20, nil), drawnOf(t, 100, 20, sizeTable(30))
	if len(pilot) != 20 || len(second) != 30 {
		t.Fatalf("%d and %d images are drawn", len(pilot), len(second))
	}
	for _, i := range pilot {
		if slices.Contains(second, i) {
			t.Errorf("image %d is in both phases", i)
		}
	}
	if all := drawnOf(t, 100, 20, sizeTable(1000)); len(all) != 80 {
		t.Errorf("of 80 others %d are drawn", len(all))
	}
	if all := drawnOf(t, 15, 20, nil); len(all) != 15 {
		t.Errorf("of 15 images %d are drawn", len(all))
	}
	// More images leave the order of the others as it is.
	more := drawnOf(t, 120, 20, nil)
	kept := 0
	for _, i := range pilot {
		if slices.Contains(more, i) {
			kept++
		}
	}
	if kept < 12 {
		t.Errorf("of the pilot of 100 images %d are in that of 120", kept)
	}
}

// TestDrawIsUniform draws with many seeds: each item as often as any other.
func TestDrawIsUniform(t *testing.T) {
	const seeds, items, drawn = 4000, 12, 5
	var ids stages.ItemSlice
	for i := range items {
		ids = append(ids, stages.Item{ID: fmt.Sprintf("photo %d.png", i)})
	}
	var counts [items]int
	for seed := range uint64(seeds) {
		order, err := drawOrder(seed, ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range order[:drawn] {
			counts[i]++
		}
	}
	const p = float64(drawn) / items
	for i, n := range counts {
		if off := (float64(n) - seeds*p) / math.Sqrt(seeds*p*(1-p)); math.Abs(off) > 4 {
			t.Errorf("item %d is drawn %d times, %.1f deviations off", i, n, off)
		}
	}
}

// TestSecondPhase asks for the size that the formula has, for the noisiest of means and differences.
func TestSecondPhase(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const items, pilot = 1000, 100
	at := func(values [][]byte, method string) stages.Data {
		return stagetest.At(stagetest.Items(stages.Measure{Direction: stages.Higher}.Facts(nil), values...),
			"method", method)
	}
	var cheap, exact [2][][]byte
	for range items {
		of := 3 * r.NormFloat64()
		for k := range cheap {
			y := of + r.NormFloat64() + float64(k)
			cheap[k] = append(cheap[k], stages.Scalar(y+0.2*r.NormFloat64()))
			exact[k] = append(exact[k], stages.Scalar(y))
		}
	}
	in := map[string][]stages.Data{"scores": {at(cheap[0], "ig"), at(cheap[1], "rise")},
		"pilot": {at(exact[0][:pilot], "ig"), at(exact[1][:pilot], "rise")}}
	size := func(rank string) (n, ratio float64) {
		r := stagetest.Run(t, SecondPhase, &SecondPhaseParams{Rank: rank, Growth: 0.02}, in)
		table, err := stages.DecodeTable(r.Payloads["size"][0])
		if err != nil {
			t.Fatal(err)
		}
		return table.Number(table.Rows[0], "images"), table.Number(table.Rows[0], "variance of the error")
	}
	// Means vary by 10, their errors by 0.04: the pilot's number suffices. Differences vary by 2, theirs by
	// 0.08.
	if n, ratio := size(""); n != pilot || math.Abs(ratio/0.004-1) > 0.4 {
		t.Errorf("means need %v, at the ratio %v", n, ratio)
	}
	n, ratio := size("method")
	want := math.Ceil(900 / (1 + 0.0404*1000/(900*ratio*1.02)))
	if n != want || ratio < 0.03 || ratio > 0.1 {
		t.Errorf("differences need %v, at the ratio %v: want %v", n, ratio, want)
	}
}

package publish

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestMergingIsFlat: merging the scores of items holds nothing an item, and makes less than its text on the
// way, whether the score is new or published.
func TestMergingIsFlat(t *testing.T) {
	results := func(items int) *Results {
		r := &Results{Name: "flat"}
		list := Items{Values: make([]float64, items)}
		for i := range items {
			list.IDs = append(list.IDs, fmt.Sprintf("img-%06d", i))
			list.Values[i] = 1 / float64(i+3)
		}
		for _, m := range []string{"a", "b", "c", "d"} {
			r.Cells = append(r.Cells, Cell{Name: "s[m=" + m + "]", Stage: "s", N: items,
				Coord: []stages.Coord{{Axis: "m", ID: m}}, Definition: stages.Sum([]byte(m)),
				Scores: []Score{{"s", stages.Measure{}, list}}})
		}
		return r
	}
	measure := func(r *Results, files map[string][]byte) (made, held float64, all map[string][]byte) {
		var before, after, end runtime.MemStats
		disk := readFiles(files)
		runtime.GC()
		runtime.ReadMemStats(&before)
		m, err := mergeFolder(disk, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		runtime.GC()
		runtime.ReadMemStats(&end)
		m.fitItems()
		made = float64(after.TotalAlloc - before.TotalAlloc)
		held = float64(end.HeapAlloc) - float64(before.HeapAlloc)
		return made, held, render(m.out)
	}
	var made, held [2]float64
	for _, files := range []string{"new", "published"} {
		for i, n := range []int{10_000, 40_000} {
			r := results(n)
			var published map[string][]byte
			if files == "published" {
				_, _, published = measure(r, nil)
			}
			made[i], held[i], _ = measure(r, published)
			runtime.KeepAlive(r)
		}
		const rows = 4 * (40_000 - 10_000)
		each, kept := (made[1]-made[0])/rows, (held[1]-held[0])/rows
		t.Logf("%s: merging one more score makes %.1f bytes and holds %.1f", files, each, kept)
		if each > 24 || kept > 1 {
			t.Errorf("%s: merging one more score makes %.1f bytes and holds %.1f", files, each, kept)
		}
	}
}

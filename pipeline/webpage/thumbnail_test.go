package webpage

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/report"
	"github.com/runexp/runexp/stages/stagetest"
	"github.com/runexp/runexp/stages/thumbnail"
)

// gone are payloads that a stage with store: none hasn't left in the store.
func gone(ids ...string) *results.Payloads {
	return &results.Payloads{IDs: ids, Load: func(int) ([]byte, error) { return nil, fs.ErrNotExist }}
}

func kept(payloads [][]byte, ids ...string) *results.Payloads {
	return &results.Payloads{IDs: ids, Load: func(i int) ([]byte, error) { return payloads[i], nil }}
}

// modelOf returns the model of a page with these maps.
func modelOf(t *testing.T, maps ...*results.CellMaps) *model {
	t.Helper()
	v, err := publish.ReadVersion(folder(t, map[string]string{"cells/s.jsonl": line("s", 1)}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(Source{Version: v, Maps: maps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// noisyMaps returns three maps with values of high frequency, of a side.
func noisyMaps(side int) (maps [][]byte, ids []string) {
	for k := range 3 {
		v := make([]float32, side*side)
		for i := range v {
			v[i] = float32((i+k)*7919%1009) - 500
		}
		maps = append(maps, stages.NewTensor(v, side, side).Encode())
	}
	return maps, []string{"item-0", "item-1", "item-2"}
}

// TestEndsAreOfTheWholeMap: a map that is shown reduced keeps the ends of the whole map, as a sheet prints
// them, and its own size.
func TestEndsAreOfTheWholeMap(t *testing.T) {
	for _, side := range []int{64, thumbnail.Side, 224} {
		maps, ids := noisyMaps(side)
		c := modelOf(t, &results.CellMaps{Cell: "maps", Maps: kept(maps, ids...)}).Maps[0].Cells[0]
		shown := min(side, thumbnail.Side)
		if got := c.Sizes[0][0]; got != shown || (c.Full == nil) != (got == side) {
			t.Errorf("side %d: shown at %d, full size %v", side, got, c.Full)
		}
		for i, m := range maps {
			p, err := thumbnail.PlaneOf(m)
			if err != nil {
				t.Fatal(err)
			}
			low, high := p.Ends(true)
			if want := [2]number{number(low), number(high)}; c.Ends[i] != want {
				t.Errorf("side %d, map %d: ends %v, of the whole map %v", side, i, c.Ends[i], want)
			}
		}
	}
}

// TestFallback: thumbnails are shown where the store hasn't got the maps, and reported as such: they have
// ends of their own.
func TestFallback(t *testing.T) {
	maps, ids := noisyMaps(128)
	reduced := stagetest.Run(t, report.Thumbnails, nil,
		map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)}}).Payloads
	full := modelOf(t, &results.CellMaps{Cell: "maps", Maps: kept(maps, ids...)})
	less := modelOf(t, &results.CellMaps{Cell: "maps", Maps: gone(ids...), Small: &results.Small{
		Maps: kept(reduced["thumbnails"], ids...), Ends: kept(reduced["ends"], ids...)}})
	if len(full.Maps) != 1 || len(less.Maps) != 1 || len(less.Left) != 0 {
		t.Fatalf("%d and %d stages of maps, left out: %q", len(full.Maps), len(less.Maps), less.Left)
	}
	a, b := full.Maps[0].Cells[0], less.Maps[0].Cells[0]
	if !slices.Equal(a.Sizes, b.Sizes) || a.Signed != b.Signed || b.Full[0] != small {
		t.Errorf("thumbnails give %v, their maps %v", b, a)
	}
	for i, want := range maps {
		p, err := thumbnail.PlaneOf(want)
		if err != nil {
			t.Fatal(err)
		}
		low, high := p.Within(thumbnail.Side).Ends(true)
		if want := [2]number{number(low), number(high)}; b.Ends[i] != want {
			t.Errorf("thumbnail %d has the ends %v, want %v", i, b.Ends[i], want)
		}
	}
}

// TestMissingMaps: the page names maps that the store hasn't got, and what gives them.
func TestMissingMaps(t *testing.T) {
	m := modelOf(t,
		&results.CellMaps{Cell: "maps[method=a]", Maps: gone("x"), Wire: "maps"},
		&results.CellMaps{Cell: "maps[method=b]", Maps: gone("x"), Wire: "maps"},
		&results.CellMaps{Cell: "fused", Maps: gone("x")})
	if len(m.Maps) != 0 || len(m.Left) != 2 {
		t.Fatalf("%d stages of maps, left out: %q", len(m.Maps), m.Left)
	}
	for i, want := range [][2]string{
		{"no maps of fused (cells: 1)", "runexp run --force fused makes them again"},
		{"no maps of maps (cells: 2)", "maps-thumbnails: {uses: report/thumbnails, in: {maps: maps}}"},
	} {
		for _, part := range want {
			if !strings.Contains(m.Left[i], part) {
				t.Errorf("the page says %q, without %q", m.Left[i], part)
			}
		}
	}
}

package webpage

import (
	"bytes"
	"compress/flate"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/report"
	"github.com/runexp/runexp/stages/stagetest"
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

func levelsOf(t *testing.T, m *model, c mapCell) []byte {
	t.Helper()
	b, err := io.ReadAll(flate.NewReader(bytes.NewReader(m.blobs[c.Blob])))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFallback: thumbnails show what the maps would have shown where the store hasn't got these.
func TestFallback(t *testing.T) {
	var maps [][]byte
	for k := range 3 {
		v := make([]float32, 128*128)
		for i := range v {
			v[i] = float32((i+k)*7919%1009) - 500
		}
		maps = append(maps, stages.NewTensor(v, 128, 128).Encode())
	}
	ids := []string{"item-0", "item-1", "item-2"}
	small := stagetest.Run(t, report.Thumbnails, nil,
		map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)}}).Payloads
	full := modelOf(t, &results.CellMaps{Cell: "maps", Maps: kept(maps, ids...)})
	less := modelOf(t, &results.CellMaps{Cell: "maps", Maps: gone(ids...), Small: &results.Small{
		Maps: kept(small["thumbnails"], ids...), Ends: kept(small["ends"], ids...)}})
	if len(full.Maps) != 1 || len(less.Maps) != 1 || len(less.Left) != 0 {
		t.Fatalf("%d and %d stages of maps, left out: %q", len(full.Maps), len(less.Maps), less.Left)
	}
	a, b := full.Maps[0].Cells[0], less.Maps[0].Cells[0]
	if !slices.Equal(a.Sizes, b.Sizes) || !slices.Equal(a.Ends, b.Ends) || a.Signed != b.Signed {
		t.Errorf("thumbnails give %v, their maps %v", b, a)
	}
	if !bytes.Equal(levelsOf(t, full, a), levelsOf(t, less, b)) {
		t.Error("thumbnails give other levels than their maps")
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

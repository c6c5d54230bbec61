package zoo

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/relevance"
)

// unpacked returns a folder of the nets in testdata.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join("testdata", "subset.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name, packed := strings.CutSuffix(filepath.Base(f), ".gz")
		if packed {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if b, err = io.ReadAll(r); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSubset holds ten small nets of unlike families against their references. They are those of
// subset_nets.py.
func TestSubset(t *testing.T) {
	all := specimens(t, unpacked(t))
	var names []string
	for _, s := range all {
		names = append(names, s.name)
		t.Run(s.name+"/"+s.exporter, func(t *testing.T) {
			n, err := s.net()
			if err != nil {
				t.Fatal(err)
			}
			want, err := s.array("gradient")
			if err != nil {
				t.Fatal(err)
			}
			slot := newSlot()
			defer slot.close()
			got, _, err := s.derivative(t, n, slot, relevance.Derivative())
			if err != nil {
				t.Fatal(err)
			}
			if e := distance(got, want); !(e <= s.limit()) {
				t.Errorf("the relative error is %s, and may be %s", figure(e), figure(s.limit()))
			}
			if share, err := s.share(t, n, slot, got); err != nil || share < 0.1 {
				t.Errorf("residual branches have %.2g of the derivative: wrong rules in them could hide (%v)",
					share, err)
			}
		})
	}
	if n := len(slices.Compact(names)); n < 10 {
		t.Errorf("%d nets", n)
	}
	size := int64(0)
	files, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 1<<20 {
		t.Errorf("the nets take %d bytes", size)
	}
}

// TestTable holds that the committed table has the result of every net, and that a failure is explained to.
func TestTable(t *testing.T) {
	rows := readTable(t)
	families := map[string]bool{}
	for _, r := range rows {
		families[r.Net] = true
		limit := specimen{known: known{Single: r.Single}}.limit()
		switch {
		case r.Problem == "" && !(r.Error <= limit):
			t.Errorf("%s: error %g and no word about it", r.key(), r.Error)
		case r.Problem == "" && (r.Opset == 0 || r.Nodes == 0 || len(r.Operators) == 0):
			t.Errorf("%s: it was never run", r.key())
		case r.Problem == "" && r.Share < 0.1:
			t.Errorf("%s: residual branches have %.2g of the derivative: wrong rules in them could hide",
				r.key(), r.Share)
		}
	}
	if len(families) < 80 {
		t.Errorf("%d nets", len(families))
	}
}

package npy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestStack(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := encode(stages.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 3, 1, 2))
	s, err := OpenStack(write("stack.npy", whole))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Len() != 3 {
		t.Errorf("%d rows, want 3", s.Len())
	}
	for _, i := range []int{2, 0, 1} { // in any order
		row, err := s.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		if want := []float64{float64(2*i + 1), float64(2*i + 2)}; !slices.Equal(row.Float64s(), want) ||
			!slices.Equal(row.Shape, []int{1, 2}) {
			t.Errorf("row %d is %v of shape %v, want %v", i, row.Float64s(), row.Shape, want)
		}
	}
	for _, i := range []int{-1, 3} {
		if _, err := s.Row(i); err == nil {
			t.Errorf("row %d exists", i)
		}
	}

	big, err := OpenStack(write("big.npy", file(">i2", false, "(2, 1)", []byte{1, 2, 3, 4})))
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	if row, err := big.Row(1); err != nil || row.Float64s()[0] != 0x304 {
		t.Errorf("a big-endian row is %v, %v", row.Float64s(), err)
	}

	for name, c := range map[string]struct {
		b    []byte
		part string
	}{
		"short.npy":   {whole[:len(whole)-1], "holds 23"},
		"long.npy":    {append(slices.Clone(whole), 0), "holds 25"},
		"fortran.npy": {file("<i2", true, "(2, 1)", []byte{1, 2, 3, 4}), "Fortran order"},
		"number.npy":  {file("<i2", false, "()", []byte{1, 2}), "single number"},
		"text.npy":    {[]byte("not an array"), "not a .npy array"},
	} {
		if _, err := OpenStack(write(name, c.b)); err == nil || !strings.Contains(err.Error(), c.part) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.part)
		}
	}
	if _, err := OpenStack(filepath.Join(dir, "none.npy")); !os.IsNotExist(err) {
		t.Errorf("a missing file gives %v", err)
	}
}

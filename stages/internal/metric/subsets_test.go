package metric

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestSubsets(t *testing.T) {
	s := NewSubsets(3, 10)
	for _, k := range []int{0, 3, 9} {
		s.Add(0, k)
	}
	s.Complement(1, 0)
	s.Copy(2, 1)
	want := stages.NewTensor([]uint8{0b10010000, 0b01000000, 0b01101111, 0b10000000, 0b01101111, 0b10000000},
		3, 2).Encode()
	if !slices.Equal(s.Encode(), want) {
		t.Fatalf("encoded as %b, want %b", s.Encode(), want)
	}
	s, err := DecodeSubsets(want, 10)
	if err != nil {
		t.Fatal(err)
	}
	values := []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	if got := s.Sums(values); !slices.Equal(got, []float64{521, 502, 502}) || s.Size(0) != 3 ||
		s.Size(1) != 7 {
		t.Errorf("sums %v, sizes %d and %d", got, s.Size(0), s.Size(1))
	}
	for k := range values {
		if s.Has(0, k) != (k == 0 || k == 3 || k == 9) || s.Has(0, k) == s.Has(1, k) {
			t.Errorf("the sets are wrong about unit %d", k)
		}
	}
	for _, units := range []int{8, 9, 17} {
		if _, err := DecodeSubsets(want, units); err == nil {
			t.Errorf("accepted as subsets of %d units", units)
		}
	}
	u := Units{Of: []int32{1, 0, 1}, Count: 2}
	if got := u.Sum([]float64{1, 2, 4}); !slices.Equal(got, []float64{2, 5}) {
		t.Errorf("sums of units %v", got)
	}
}

package metric

import (
	"fmt"
	"math/bits"

	"github.com/runexp/runexp/stages"
)

// Subsets are sets of an image's units, packed as in a payload of [stages.Subsets].
type Subsets struct {
	Count  int // of sets
	Units  int // that a set may have, numbered from 0
	packed []uint8
}

// NewSubsets returns count empty sets of a number of units.
func NewSubsets(count, units int) Subsets {
	return Subsets{count, units, make([]uint8, count*width(units))}
}

// width returns the bytes of a set.
func width(units int) int { return (units + 7) / 8 }

// DecodeSubsets reads a payload of sets of a number of units.
func DecodeSubsets(payload []byte, units int) (s Subsets, err error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return s, err
	}
	if t.DType != stages.U8 || len(t.Shape) != 2 || t.Shape[1] != width(units) {
		return s, fmt.Errorf("subsets of type %s and shape %v don't match %d units", t.DType, t.Shape, units)
	}
	s = Subsets{t.Shape[0], units, t.Raw}
	for i := range s.Count {
		if row := s.row(i); units%8 > 0 && row[len(row)-1]<<(units%8) != 0 {
			return s, fmt.Errorf("subset %d has a unit beyond the last of %d", i, units)
		}
	}
	return s, nil
}

// Encode returns the payload of the sets.
func (s Subsets) Encode() []byte {
	return stages.NewTensor(s.packed, s.Count, width(s.Units)).Encode()
}

func (s Subsets) row(i int) []uint8 {
	w := width(s.Units)
	return s.packed[i*w : (i+1)*w]
}

// Add adds a unit to set i.
func (s Subsets) Add(i, unit int) { s.row(i)[unit/8] |= 0x80 >> (unit % 8) }

// Has reports whether set i has a unit.
func (s Subsets) Has(i, unit int) bool { return s.row(i)[unit/8]&(0x80>>(unit%8)) != 0 }

// Outside writes 1 for each pixel whose unit isn't in set i, and 0 for the others.
func (s Subsets) Outside(i int, u Units, mask []float32) {
	row := s.row(i)
	for k, unit := range u.Of {
		mask[k] = float32(1 - row[unit>>3]>>(7-unit&7)&1)
	}
}

// Copy makes set to equal to set from.
func (s Subsets) Copy(to, from int) { copy(s.row(to), s.row(from)) }

// Complement makes set to the complement of set from.
func (s Subsets) Complement(to, from int) {
	dst := s.row(to)
	for k, b := range s.row(from) {
		dst[k] = ^b
	}
	if s.Units%8 > 0 {
		dst[len(dst)-1] &= 0xff << (8 - s.Units%8)
	}
}

// Size returns how many units set i has.
func (s Subsets) Size(i int) (n int) {
	for _, b := range s.row(i) {
		n += bits.OnesCount8(b)
	}
	return n
}

// Sum returns the sum of a value of each unit over the units of set i, in their order.
func (s Subsets) Sum(i int, values []float64) (sum float64) {
	for k, b := range s.row(i) {
		for b != 0 {
			first := bits.LeadingZeros8(b)
			sum += values[8*k+first]
			b &^= 0x80 >> first
		}
	}
	return sum
}

// Sums returns the sums over all sets.
func (s Subsets) Sums(values []float64) []float64 {
	sums := make([]float64, s.Count)
	for i := range sums {
		sums[i] = s.Sum(i, values)
	}
	return sums
}

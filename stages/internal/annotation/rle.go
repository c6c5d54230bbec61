package annotation

import (
	"errors"
	"fmt"
	"math"
)

// Decompress reads COCO's compressed run lengths. A run is the difference to the one before the last, in
// digits of five bits, the least significant first. A character is 48 + digit, plus 32 if another digit of
// the same number follows; bit 4 of a number's last digit is its sign.
func Decompress(text string) ([]uint32, error) {
	runs := make([]uint32, 0, len(text))
	for p := 0; p < len(text); {
		x, more := int64(0), true
		for shift := 0; more; shift += 5 {
			if p == len(text) {
				return nil, errors.New("compressed run lengths end within a number")
			}
			c := int64(text[p]) - 48
			if c < 0 || c > 63 {
				return nil, fmt.Errorf("the character %q in compressed run lengths", text[p])
			}
			if shift > 35 {
				return nil, errors.New("a number of compressed run lengths is too large")
			}
			p++
			x |= c & 0x1f << shift
			if more = c&0x20 != 0; !more && c&0x10 != 0 {
				x |= -1 << (shift + 5)
			}
		}
		if n := len(runs); n > 2 {
			x += int64(runs[n-2])
		}
		if x < 0 || x > math.MaxUint32 {
			return nil, fmt.Errorf("run %d has %d pixels", len(runs), x)
		}
		runs = append(runs, uint32(x))
	}
	return runs, nil
}

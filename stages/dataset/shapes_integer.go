package dataset

// All pixels of dataset/shapes are computed in integers: the last bits of floating point differ between
// processors.

// unit is one unit of length, 1/64 of an image's side, in fixed point with 8 fractional bits. Units scale
// with the image, so that the scene is the same at every size.
const unit = 256

// side is the image's side in fixed point.
const side = 64 * unit

// one is the denominator of a [turn].
const one = 1 << 14

// A stream is a pseudo-random number generator, SplitMix64 (Steele, Lea and Flood, "Fast Splittable
// Pseudorandom Number Generators", 2014).
type stream uint64

// newStream returns the stream seeded by the given numbers.
func newStream(names ...uint64) stream {
	var s stream
	for _, n := range names {
		s = stream(s.next() ^ n)
	}
	s.next()
	return s
}

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// between returns a number in [low, high].
func (s *stream) between(low, high int64) int64 {
	return low + int64((s.next()>>32)*uint64(high-low+1)>>32)
}

// A turn is a rotation: its cosine and sine in units of 1/one.
type turn struct{ cos, sin int64 }

// newTurn returns the rotation by an angle in degrees, 0 ≤ degrees < 360.
func newTurn(degrees int64) turn { return turn{sine((degrees + 90) % 360), sine(degrees)} }

// apply rotates (x, y) by the inverse of t, from image coordinates to object coordinates.
func (t turn) apply(x, y int64) (u, v int64) {
	return (x*t.cos + y*t.sin) >> 14, (y*t.cos - x*t.sin) >> 14
}

// sine approximates the sine of an angle in degrees, 0 ≤ degrees < 360, by Bhaskara I's formula. Its error of
// at most 0.2 % merely deforms an object slightly.
func sine(degrees int64) int64 {
	if degrees >= 180 {
		return -sine(degrees - 180)
	}
	p := degrees * (180 - degrees)
	return 4 * p * one / (40500 - p)
}

func abs(x int64) int64 { return max(x, -x) }

// modulo returns the remainder of x in [0, n).
func modulo(x, n int64) int64 {
	if x %= n; x < 0 {
		x += n
	}
	return x
}

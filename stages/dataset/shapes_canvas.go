package dataset

// A colour is red, green and blue, 0 to 255 each.
type colour [3]int64

// hsv converts a hue in 0 … 1535, a saturation and a value in 0 … 255.
func hsv(hue, saturation, value int64) colour {
	hue = modulo(hue, 1536)
	low := value * (255 - saturation) / 255
	rise := low + (value-low)*(hue%256)/256
	fall := value + low - rise
	return [...]colour{
		{value, rise, low}, {fall, value, low}, {low, value, rise},
		{low, fall, value}, {rise, low, value}, {value, low, fall},
	}[hue/256]
}

// mix interpolates between a and b: share/256 of b.
func mix(a, b colour, share int64) colour {
	for i := range a {
		a[i] += ((b[i]-a[i])*share + 128) >> 8
	}
	return a
}

// A canvas is a square image and its drawing operations.
type canvas struct {
	size   int64
	pixels []uint8 // [3, size, size]
	middle []int64 // coordinate of the centre of pixel i of a row or column
}

func newCanvas(size int) *canvas {
	c := &canvas{int64(size), make([]uint8, 3*size*size), make([]int64, size)}
	for i := range c.middle {
		c.middle[i] = int64(2*i+1) * side / (2 * c.size)
	}
	return c
}

// span returns the pixels between low and high, clipped to the canvas: first ≤ i < end.
func (c *canvas) span(low, high int64) (first, end int64) {
	return max(low*c.size/side-1, 0), min(high*c.size/side+2, c.size)
}

// cover returns the coverage of a pixel, in 1/256, by an area whose edge has the signed distance outside to
// the pixel's centre.
func (c *canvas) cover(outside int64) int64 {
	return min(max(128-outside*c.size/64, 0), 256)
}

// put blends paint into pixel (x, y) with opacity share/256.
func (c *canvas) put(x, y int64, paint colour, share int64) {
	i, plane := y*c.size+x, c.size*c.size
	for _, v := range paint {
		old := int64(c.pixels[i])
		c.pixels[i] = uint8(old + ((v-old)*share+128)>>8)
		i += plane
	}
}

// fill sets every pixel to the colour of paint at its centre.
func (c *canvas) fill(paint func(x, y int64) colour) {
	i, plane := 0, len(c.middle)*len(c.middle)
	for _, y := range c.middle {
		for _, x := range c.middle {
			p := paint(x, y)
			c.pixels[i], c.pixels[i+plane], c.pixels[i+2*plane] = uint8(p[0]), uint8(p[1]), uint8(p[2])
			i++
		}
	}
}

// blob draws a soft ellipse whose opacity fades to 0 at its border.
func (c *canvas) blob(x, y, long, short int64, t turn, paint colour, share int64) {
	x0, x1 := c.span(x-long, x+long)
	y0, y1 := c.span(y-long, y+long)
	wide, high := one*256/long, one*256/short
	for j := y0; j < y1; j++ {
		for i := x0; i < x1; i++ {
			u, v := t.apply(c.middle[i]-x, c.middle[j]-y)
			u, v = u*wide>>14, v*high>>14
			if d := u*u + v*v; d < 256*256 {
				c.put(i, j, paint, share*(256*256-d)>>16)
			}
		}
	}
}

// line draws a straight stroke centred at (x, y).
func (c *canvas) line(x, y, length, width int64, t turn, paint colour, share int64) {
	half := length / 2
	reach := half*abs(t.sin)>>14 + width
	y0, y1 := c.span(y-reach, y+reach)
	reach = half*abs(t.cos)>>14 + width
	steep := max(abs(t.sin), one/64)
	for j := y0; j < y1; j++ {
		// The row meets the stroke's axis at middle ± aside.
		dy := c.middle[j] - y
		middle, aside := int64(0), reach
		if abs(t.sin) == steep {
			middle, aside = dy*t.cos/t.sin, (width+2*side/c.size)*one/steep
		}
		x0, x1 := c.span(x+max(middle-aside, -reach), x+min(middle+aside, reach))
		for i := x0; i < x1; i++ {
			u, v := t.apply(c.middle[i]-x, dy)
			if k := c.cover(max(abs(u)-half, abs(v)-width/2)); k > 0 {
				c.put(i, j, paint, k*share>>8)
			}
		}
	}
}

// object draws a scene's object in two colours and sets its pixels in mask, [size, size].
func (c *canvas) object(s *scene, first, second colour, mask []uint8) {
	x0, x1 := c.span(s.x-s.reach(), s.x+s.reach())
	y0, y1 := c.span(s.y-s.reach(), s.y+s.reach())
	for j := y0; j < y1; j++ {
		for i := x0; i < x1; i++ {
			x, y := c.middle[i]-s.x, c.middle[j]-s.y
			k := c.cover(s.outside(x, y))
			if k == 0 {
				continue
			}
			c.put(i, j, mix(first, second, s.shade(x, y, c.cover)), k)
			if k >= 128 {
				mask[j*c.size+i] = 1
			}
		}
	}
}

// noise adds a random number from −amount to amount to every value.
func (c *canvas) noise(r *stream, amount int64) {
	var bits uint64
	for i, v := range c.pixels {
		if i%4 == 0 {
			bits = r.next()
		}
		n := int64(bits&0xffff)*(2*amount+1)>>16 - amount
		bits >>= 16
		c.pixels[i] = uint8(min(max(int64(v)+n, 0), 255))
	}
}

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

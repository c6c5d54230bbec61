package superpixel

import "math"

// fromRGB is the matrix from linear sRGB to CIE XYZ, white the white point D65 of the 2° observer.
var (
	fromRGB = [3][3]float64{
		{0.412453, 0.357580, 0.180423},
		{0.212671, 0.715160, 0.072169},
		{0.019334, 0.119193, 0.950227},
	}
	white = [3]float64{0.95047, 1, 1.08883}
)

// toLab converts sRGB pixels to CIELAB.
func (m Image) toLab() {
	var linear [1 << 12]struct{ v, of float64 } // images of bytes have few values
	for p := 0; p < len(m.Pix); p += 3 {
		c := m.Pix[p : p+3 : p+3]
		var rgb, f [3]float64
		for k, v := range c {
			l := &linear[math.Float64bits(v)*0x9e3779b97f4a7c15>>52]
			if l.v != v {
				l.v, l.of = v, linearised(v)
			}
			rgb[k] = l.of
		}
		for k, row := range fromRGB {
			f[k] = compressed(math.FMA(rgb[2], row[2], math.FMA(rgb[1], row[1], rgb[0]*row[0])) / white[k])
		}
		c[0] = float64(116*f[1]) - 16
		c[1] = 500 * (f[0] - f[1])
		c[2] = 200 * (f[1] - f[2])
	}
}

// linearised returns the intensity of an sRGB value.
func linearised(v float64) float64 {
	if v > 0.04045 {
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return v / 12.92
}

// compressed returns CIELAB's root of a tristimulus value.
func compressed(t float64) float64 {
	if t > 0.008856 {
		return math.Cbrt(t)
	}
	return float64(7.787*t) + 16./116
}

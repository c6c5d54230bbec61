package chart

import (
	"cmp"
	"image/color"
	"slices"

	"github.com/runexp/runexp/stages/internal/picture"
)

// A bin is a bin of a colour histogram with 5 bits per channel.
type bin struct {
	mean  [3]int
	count int
}

// Palette selects at most n colours for photographs by median cut (Heckbert, "Color Image Quantization for
// Frame Buffer Display", SIGGRAPH 1982).
func Palette(photos []*picture.RGB, n int) []color.RGBA {
	sums := make([][4]int, 1<<15)
	for _, m := range photos {
		for i := 0; i < len(m.Pix); i += 3 {
			r, g, b := int(m.Pix[i]), int(m.Pix[i+1]), int(m.Pix[i+2])
			s := &sums[r>>3<<10|g>>3<<5|b>>3]
			s[0], s[1], s[2], s[3] = s[0]+r, s[1]+g, s[2]+b, s[3]+1
		}
	}
	var bins []bin
	for _, s := range sums {
		if s[3] > 0 {
			bins = append(bins, bin{[3]int{s[0] / s[3], s[1] / s[3], s[2] / s[3]}, s[3]})
		}
	}
	if len(bins) == 0 {
		return nil
	}
	boxes := [][]bin{bins}
	for len(boxes) < n {
		best, channel, most := -1, 0, 0
		for i, b := range boxes {
			if c, spread := widest(b); spread > most {
				best, channel, most = i, c, spread
			}
		}
		if best < 0 {
			break
		}
		b := boxes[best]
		slices.SortStableFunc(b, func(p, q bin) int { return cmp.Compare(p.mean[channel], q.mean[channel]) })
		half, sum := 0, 0
		for _, p := range b {
			half += p.count
		}
		cut := 0
		for sum += b[0].count; cut < len(b)-2 && 2*sum < half; sum += b[cut].count {
			cut++
		}
		boxes[best] = b[:cut+1]
		boxes = append(boxes, b[cut+1:])
	}
	var out []color.RGBA
	for _, b := range boxes {
		var s [3]int
		n := 0
		for _, p := range b {
			for c := range s {
				s[c] += p.mean[c] * p.count
			}
			n += p.count
		}
		out = append(out, color.RGBA{uint8(s[0] / n), uint8(s[1] / n), uint8(s[2] / n), 255})
	}
	return out
}

// widest returns the channel with the largest spread over the bins, weighted by the eye's sensitivity and by
// the number of pixels.
func widest(b []bin) (channel, spread int) {
	if len(b) < 2 {
		return 0, 0
	}
	n := 0
	low, high := b[0].mean, b[0].mean
	for _, p := range b {
		n += p.count
		for c := range low {
			low[c], high[c] = min(low[c], p.mean[c]), max(high[c], p.mean[c])
		}
	}
	root := 1 // square root of the count, in integers
	for root*root < n {
		root++
	}
	for c, weight := range [3]int{3, 4, 2} {
		if s := (high[c] - low[c]) * weight * root; s > spread {
			channel, spread = c, s
		}
	}
	return channel, spread
}

// Dither returns m in the colours of a palette, by error diffusion (Floyd and Steinberg, "An Adaptive
// Algorithm for Spatial Greyscale", 1976).
func Dither(m *picture.RGB, palette []color.RGBA) *picture.RGB {
	colours := make(color.Palette, len(palette))
	for i, p := range palette {
		colours[i] = p
	}
	out := picture.NewRGB(m.W, m.H)
	below, here := make([][3]int, m.W+2), make([][3]int, m.W+2) // errors times 16
	for y := range m.H {
		here, below = below, here
		clear(below)
		for x := range m.W {
			at := 3 * (y*m.W + x)
			var exact [3]int
			for c := range exact {
				exact[c] = min(max(int(m.Pix[at+c])+here[x+1][c]/16, 0), 255)
			}
			nearest := palette[nearest(colours,
				color.RGBA{uint8(exact[0]), uint8(exact[1]), uint8(exact[2]), 255})]
			for c, v := range [3]uint8{nearest.R, nearest.G, nearest.B} {
				out.Pix[at+c] = v
				// Diffusing only part of the error keeps flat areas free of noise.
				e := (exact[c] - int(v)) * 3 / 4
				here[x+2][c] += 7 * e
				below[x][c] += 3 * e
				below[x+1][c] += 5 * e
				below[x+2][c] += e
			}
		}
	}
	return out
}

// Photo draws an image with its top left corner at (x, y).
func (c *Canvas) Photo(x, y int, m *picture.RGB) {
	for i := range m.W * m.H {
		c.Image.SetRGBA(x+i%m.W, y+i/m.W, color.RGBA{m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2], 255})
	}
}

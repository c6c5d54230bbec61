package picture

// colours upsamples the planes and converts them to RGB.
func (d *jpegDecoder) colours() *RGB {
	m := NewRGB(d.w, d.h)
	rows := make([][]uint8, len(d.comps))
	for i := range rows {
		rows[i] = make([]uint8, d.w+d.hMax)
	}
	luma := d.lumaChroma()
	for y := range d.h {
		for i := range d.comps {
			d.upsample(rows[i], &d.comps[i], y)
		}
		for x := range d.w {
			p := m.Pix[3*(y*d.w+x):][:3]
			if len(rows) == 1 {
				p[0], p[1], p[2] = rows[0][x], rows[0][x], rows[0][x]
				continue
			}
			p[0], p[1], p[2] = rows[0][x], rows[1][x], rows[2][x]
			if luma {
				fromYCbCr(p)
			}
			if len(rows) == 4 {
				// Inks are stored inverted, by all known writers, and so is the result of fromYCbCr; with a
				// fourth component it is inverted again.
				if !luma {
					p[0], p[1], p[2] = 255-p[0], 255-p[1], 255-p[2]
				}
				inks(p, 255-rows[3][x])
			}
		}
	}
	return m
}

// lumaChroma reports whether the first three components are Y, Cb and Cr. Files need not declare it; these
// are libjpeg's rules.
func (d *jpegDecoder) lumaChroma() bool {
	switch {
	case len(d.comps) == 4:
		return d.adobe == 2
	case len(d.comps) < 3:
		return false
	case d.jfif:
		return true
	case d.adobe >= 0:
		return d.adobe != 0
	}
	return !(d.comps[0].id == 'R' && d.comps[1].id == 'G' && d.comps[2].id == 'B')
}

// fromYCbCr converts a pixel in place. The constants are 1.402, 0.34414, 0.71414 and 1.772 times 2¹⁶.
func fromYCbCr(p []uint8) {
	y, cb, cr := int(p[0]), int(p[1])-128, int(p[2])-128
	p[0] = clip8(y + (91881*cr+1<<15)>>16)
	p[1] = clip8(y + (-22554*cb-46802*cr+1<<15)>>16)
	p[2] = clip8(y + (116130*cb+1<<15)>>16)
}

// inks converts a pixel of cyan, magenta and yellow in place, given its black, with Pillow's formula for
// ideal inks.
func inks(p []uint8, k uint8) {
	nk := 255 - int(k)
	for i, v := range p {
		t := int(v)*nk + 128 // round(v·nk/255), in integers
		p[i] = clip8(nk - ((t>>8)+t)>>8)
	}
}

// upsample writes row y of a component at full resolution. Components at half resolution are interpolated by
// a triangle filter, horizontally only if they are wider than two samples; others are replicated. This is
// libjpeg's default; replicating all would change single pixels by dozens of levels.
func (d *jpegDecoder) upsample(dst []uint8, c *component, y int) {
	fx, fy := d.hMax/c.h, d.vMax/c.v
	row := func(i int) []uint8 { return c.plane[min(max(i, 0), c.hgt-1)*c.planeWidth:][:c.w] }
	near, last := row(y/fy), c.w-1
	next := row(y/2 - 1 + 2*(y%2)) // the second nearest row if fy is 2
	switch {
	case fx == 1 && fy == 1:
		copy(dst, near)
	case fx == 2 && fy == 1 && c.w > 2:
		for i, v := range near {
			dst[2*i] = uint8((3*int(v) + int(near[max(i-1, 0)]) + 1) >> 2)
			dst[2*i+1] = uint8((3*int(v) + int(near[min(i+1, last)]) + 2) >> 2)
		}
	case fx == 1 && fy == 2:
		for i, v := range near {
			dst[i] = uint8((3*int(v) + int(next[i]) + 1 + y%2) >> 2)
		}
	case fx == 2 && fy == 2 && c.w > 2:
		sum := func(i int) int { return 3*int(near[i]) + int(next[i]) }
		for i := range near {
			v := 3 * sum(i)
			dst[2*i] = uint8((v + sum(max(i-1, 0)) + 8) >> 4)
			dst[2*i+1] = uint8((v + sum(min(i+1, last)) + 7) >> 4)
		}
	default:
		for x := range d.w {
			dst[x] = near[x/fx]
		}
	}
}

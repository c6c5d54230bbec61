package picture

import "image"

// fromVP8 converts a decoded lossy WebP with libwebp's arithmetic. VP8 has luma from 16 to 235, while JPEG
// uses all of 0 to 255, and chroma at half resolution, which is interpolated.
func fromVP8(m *RGB, src *image.YCbCr) {
	w, h := m.W, m.H
	cw, ch := (w+1)/2, (h+1)/2
	at := func(plane []uint8, x, y int) int {
		return int(plane[min(max(y, 0), ch-1)*src.CStride+min(max(x, 0), cw-1)])
	}
	for y := range h {
		luma := src.Y[src.YOffset(src.Rect.Min.X, src.Rect.Min.Y+y):]
		y0, y1 := y/2, y/2-1+2*(y%2) // the nearer and the farther chroma row
		for x := range w {
			x0, x1 := x/2, x/2-1+2*(x%2)
			chroma := func(plane []uint8) int {
				a, b, c, d := at(plane, x0, y0), at(plane, x1, y0), at(plane, x0, y1), at(plane, x1, y1)
				// (9a + 3b + 3c + d + 8) / 16, rounded as libwebp does, in two steps.
				return (a + (a+3*b+3*c+d+8)>>3) >> 1
			}
			u, v, l := chroma(src.Cb), chroma(src.Cr), 19077*int(luma[x])>>8
			p := m.Pix[3*(y*w+x):][:3]
			p[0] = clip8((l + 26149*v>>8 - 14234) >> 6)
			p[1] = clip8((l - 6419*u>>8 - 13320*v>>8 + 8708) >> 6)
			p[2] = clip8((l + 33050*u>>8 - 17685) >> 6)
		}
	}
}

func clip8(v int) uint8 { return uint8(min(max(v, 0), 255)) }

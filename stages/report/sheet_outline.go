package report

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/picture"
)

// An outline is what is outlined on an image and its maps: rectangles and a mask, in shares of the image.
type outline struct {
	boxes [][4]float64 // left, top, right, bottom
	grid  int          // cells along a side, 0 for no grid
	mask  []float64    // [maskH,maskW], 1 on the object; nil for none
	maskW int
	maskH int
}

// outlineOf reads what is outlined on an image.
func outlineOf(e *stages.Env, id string, place []stages.Coord, photo *picture.RGB) (m outline, err error) {
	for _, port := range []string{"boxes", "cells"} {
		b, d, err := exactly(e.Ports[port], id, place)
		if err != nil || b == nil {
			if err != nil {
				return m, err
			}
			continue
		}
		t, err := stages.DecodeTensor(b)
		if err != nil || t.Len()%4 != 0 {
			return m, fmt.Errorf("%s of %q: no boxes", port, id)
		}
		v := t.Float64s()
		for ; len(v) >= 4; v = v[4:] {
			w, h := float64(photo.W), float64(photo.H)
			box := [4]float64{v[0] / w, v[1] / h, v[2] / w, v[3] / h}
			for _, x := range box {
				if math.IsNaN(x) {
					return m, fmt.Errorf("%s of %q: an edge is undefined", port, id)
				}
			}
			m.boxes = append(m.boxes, box)
		}
		if n, err := strconv.Atoi(d.Facts["grid"]); err == nil && n > 1 {
			m.grid = n
		}
	}
	b, _, err := exactly(e.Ports["masks"], id, place)
	if err != nil || b == nil {
		return m, err
	}
	t, err := stages.DecodeTensor(b)
	if err != nil || len(t.Shape) != 2 || t.Len() == 0 {
		return m, fmt.Errorf("mask of %q: no mask", id)
	}
	m.maskH, m.maskW, m.mask = t.Shape[0], t.Shape[1], t.Float64s()
	return m, nil
}

// exactly is at for the item with that very id: what is derived from an image has its objects elsewhere.
func exactly(data []stages.Data, id string, place []stages.Coord) ([]byte, *stages.Data, error) {
	for k := range data {
		if !agree(place, data[k].Coord) {
			continue
		}
		for i := range data[k].Items.Len() {
			item, err := data[k].Items.At(i)
			if err != nil {
				return nil, nil, err
			}
			if item.ID == id {
				b, err := data[k].Load(i)
				return b, &data[k], err
			}
		}
	}
	return nil, nil, nil
}

// draw outlines what is marked in a rectangle of the canvas that shows the image: in dark outside and white
// inside, so that it's seen on any ground.
func (m *outline) draw(c *chart.Canvas, r image.Rectangle) {
	for k := 1; k < m.grid; k++ {
		x, y := r.Min.X+r.Dx()*k/m.grid, r.Min.Y+r.Dy()*k/m.grid
		c.Fill(image.Rect(x, r.Min.Y, x+1, r.Max.Y), chart.Soft)
		c.Fill(image.Rect(r.Min.X, y, r.Max.X, y+1), chart.Soft)
	}
	for _, box := range m.boxes {
		place := func(share float64, n int) int { return int(math.Round(min(max(share, 0), 1) * float64(n))) }
		edge := image.Rect(place(box[0], r.Dx()), place(box[1], r.Dy()), place(box[2], r.Dx()),
			place(box[3], r.Dy())).Add(r.Min)
		c.Outline(edge, chart.Ink)
		if inner := edge.Inset(1); !inner.Empty() {
			c.Outline(inner, chart.White)
		}
	}
	if m.mask == nil {
		return
	}
	on := make([]bool, r.Dx()*r.Dy())
	for i := range on {
		x, y := i%r.Dx()*m.maskW/r.Dx(), i/r.Dx()*m.maskH/r.Dy()
		v := m.mask[y*m.maskW+x]
		on[i] = v != 0 && v != float64(stages.Ignored)
	}
	for _, col := range []color.RGBA{chart.Ink, chart.White} {
		on = peel(c, r, on, col)
	}
}

// peel paints the outermost pixels of a mask and returns the mask without them.
func peel(c *chart.Canvas, r image.Rectangle, on []bool, col color.RGBA) []bool {
	w, h := r.Dx(), r.Dy()
	set := func(x, y int) bool { return x >= 0 && y >= 0 && x < w && y < h && on[y*w+x] }
	inner := make([]bool, len(on))
	for i := range on {
		x, y := i%w, i/w
		if !on[i] {
			continue
		}
		inner[i] = set(x-1, y) && set(x+1, y) && set(x, y-1) && set(x, y+1)
		if !inner[i] {
			c.Image.SetRGBA(r.Min.X+x, r.Min.Y+y, col)
		}
	}
	return inner
}

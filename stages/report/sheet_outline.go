package report

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/picture"
)

// An outline is drawn on an image and its maps: rectangles, a mask and segments, in fractions of the image's
// size.
type outline struct {
	boxes [][4]float64 // left, top, right, bottom
	grid  int          // cells along a side, 0 for no grid
	mask  []float64    // [maskH,maskW], 1 on the object; nil for none
	maskW int
	maskH int
	labels
}

// labels are the segments of an image, [h,w]; of is nil for none.
type labels struct {
	of   []uint32
	h, w int
}

// outlineOf reads the outline of an image.
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
	if t, err := plane(e.Ports["masks"], id, place); err != nil {
		return m, fmt.Errorf("mask of %q: %w", id, err)
	} else if t != nil {
		m.maskH, m.maskW, m.mask = t.Shape[0], t.Shape[1], t.Float64s()
	}
	t, err := plane(e.Ports["segments"], id, place)
	if err != nil {
		return m, fmt.Errorf("segments of %q: %w", id, err)
	}
	if t != nil {
		m.labels = labels{t.Uint32s(), t.Shape[0], t.Shape[1]}
	}
	return m, nil
}

// plane returns an image's tensor of shape [h,w], nil if there is none.
func plane(data []stages.Data, id string, place []stages.Coord) (*stages.Tensor, error) {
	b, _, err := exactly(data, id, place)
	if err != nil || b == nil {
		return nil, err
	}
	t, err := stages.DecodeTensor(b)
	if err == nil && (len(t.Shape) != 2 || t.Len() == 0) {
		err = fmt.Errorf("a tensor of shape %v has no height and width", t.Shape)
	}
	return &t, err
}

// exactly is at for the item with exactly that id: items derived from an image have their objects
// elsewhere.
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

// draw draws the outline on an area of the page that shows the image: dark outside and white inside, so
// that it is visible on any background. A mask's outline is a raster image.
func (m *outline) draw(page *chart.Page, r chart.Rect) {
	for k := 1; k < m.grid; k++ {
		x, y := r.X+r.W*float64(k)/float64(m.grid), r.Y+r.H*float64(k)/float64(m.grid)
		page.Fill(chart.Rect{X: x, Y: r.Y, W: hairline, H: r.H}, chart.Soft)
		page.Fill(chart.Rect{X: r.X, Y: y, W: r.W, H: hairline}, chart.Soft)
	}
	for _, box := range m.boxes {
		var edge [4]float64
		for i, share := range box {
			edge[i] = min(max(share, 0), 1)
		}
		area := chart.Rect{X: r.X + edge[0]*r.W, Y: r.Y + edge[1]*r.H, W: (edge[2] - edge[0]) * r.W,
			H: (edge[3] - edge[1]) * r.H}
		page.Outline(area, lineWidth, chart.Ink)
		if inner := area.Inset(lineWidth); inner.W > lineWidth && inner.H > lineWidth {
			page.Outline(inner, lineWidth, chart.White)
		}
	}
	w, h := max(int(math.Round(r.W/lineWidth)), 1), max(int(math.Round(r.H/lineWidth)), 1)
	if m.of != nil {
		page.Image(r, m.borders(w, h))
	}
	if m.mask != nil {
		page.Image(r, m.contour(w, h))
	}
}

// lineWidth is the width of each of the two lines around an object in points.
const lineWidth = 0.5

// contour returns an image of w×h pixels of the mask's edge.
func (m *outline) contour(w, h int) *chart.Raster {
	on := make([]bool, w*h)
	for i := range on {
		x, y := i%w*m.maskW/w, i/w*m.maskH/h
		v := m.mask[y*m.maskW+x]
		on[i] = v != 0 && v != float64(stages.Ignored)
	}
	pixels := make([]uint8, w*h)
	for line := range uint8(2) {
		on = peel(pixels, w, h, on, 1+line)
	}
	return lines(w, h, pixels)
}

// lines returns an image of the pixels that are 1, dark, or 2, white.
func lines(w, h int, pixels []uint8) *chart.Raster {
	return chart.Indexed(w, h, pixels, []color.NRGBA{{}, color.NRGBA(chart.Ink), color.NRGBA(chart.White)})
}

// borders returns an image of w×h pixels of the lines between segments, dark on the left and above, and white
// on the right and below.
func (m *labels) borders(w, h int) *chart.Raster {
	at := func(x, y int) uint32 { return m.of[y*m.h/h*m.w+x*m.w/w] }
	pixels := make([]uint8, w*h)
	for i := range pixels {
		x, y := i%w, i/w
		here := at(x, y)
		switch {
		case x+1 < w && at(x+1, y) != here, y+1 < h && at(x, y+1) != here:
			pixels[i] = 1
		case x > 0 && at(x-1, y) != here, y > 0 && at(x, y-1) != here:
			pixels[i] = 2
		}
	}
	return lines(w, h, pixels)
}

// peel paints the outermost pixels of a mask and returns the mask without them.
func peel(pixels []uint8, w, h int, on []bool, paint uint8) []bool {
	set := func(x, y int) bool { return x >= 0 && y >= 0 && x < w && y < h && on[y*w+x] }
	inner := make([]bool, len(on))
	for i := range on {
		x, y := i%w, i/w
		if !on[i] {
			continue
		}
		inner[i] = set(x-1, y) && set(x+1, y) && set(x, y-1) && set(x, y+1)
		if !inner[i] {
			pixels[i] = paint
		}
	}
	return inner
}

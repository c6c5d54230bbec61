package webpage

import (
	"bytes"
	"compress/flate"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages/thumbnail"
)

// The bytes of all maps before compression, which halves noisy maps and shrinks others more. A page of few
// MB opens at once and can be sent by mail; one with mostMapBytes still opens.
const (
	fewMapBytes  = 8 << 20
	mostMapBytes = 24 << 20
	perMap       = 48 * 48 // between these two
)

// mapSides are the sides that maps may have. A page has the largest at which all maps fit.
var mapSides = []int{thumbnail.Side, 64, 48, 32, 24, 16}

// hasMaps reports whether the store has the first map of a cell, or its thumbnail.
func hasMaps(p *results.CellMaps) bool {
	if p.Maps == nil || len(p.Maps.IDs) == 0 {
		return false
	}
	_, full, err := planeAt(p, 0)
	return full != unknown || err != nil
}

var (
	unknown = [2]int{}       // the store has neither a map nor its thumbnail
	small   = [2]int{-1, -1} // it has the thumbnail alone, which doesn't tell the map's size
)

// planeAt reads a map or, if that isn't stored, its thumbnail. full is the map's own width and height.
func planeAt(p *results.CellMaps, i int) (plane thumbnail.Plane, full [2]int, err error) {
	if b, err := p.Maps.Load(i); err == nil {
		plane, err = thumbnail.PlaneOf(b)
		return plane, [2]int{plane.W, plane.H}, err
	}
	if p.Small == nil || i >= min(len(p.Small.Maps.IDs), len(p.Small.Ends.IDs)) {
		return plane, unknown, nil
	}
	levels, err := p.Small.Maps.Load(i)
	if err != nil {
		return plane, unknown, nil
	}
	ends, err := p.Small.Ends.Load(i)
	if err != nil {
		return plane, unknown, nil
	}
	plane, err = thumbnail.Decode(levels, ends)
	return plane, small, err
}

// pack compresses bytes in a format that browsers decompress.
func pack(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// photo returns a thumbnail of an image, encoded, with its media type.
func photo(b []byte) (data []byte, media string, err error) {
	t, err := thumbnail.Image(b, thumbnail.Side)
	if err != nil {
		return nil, "", err
	}
	h, w := t.Shape[1], t.Shape[2]
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.SetRGBA(i%w, i/w, color.RGBA{t.Raw[i], t.Raw[w*h+i], t.Raw[2*w*h+i], 255})
	}
	var out bytes.Buffer
	if max(w, h) < thumbnail.Side { // JPEG would blur the pixels of so small an image
		err = png.Encode(&out, m)
		return out.Bytes(), "image/png", err
	}
	err = jpeg.Encode(&out, m, &jpeg.Options{Quality: 88})
	return out.Bytes(), "image/jpeg", err
}

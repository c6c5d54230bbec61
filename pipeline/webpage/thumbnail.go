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

// The bytes of all maps before they are packed, which makes half of noisy ones, and less of others: a page of
// few MB opens at once and can be sent, one of a large folder still opens.
const (
	fewMapBytes  = 4 << 20
	mostMapBytes = 24 << 20
	perMap       = 48 * 48
)

// mapSides are the sides that maps may have. A page takes the largest at which all maps fit.
var mapSides = []int{thumbnail.Side, 64, 48, 32, 24, 16}

// hasMaps reports whether the store has the maps of a cell, or thumbnails of them. It looks at one.
func hasMaps(p *results.CellMaps) bool {
	if p.Maps == nil || len(p.Maps.IDs) == 0 {
		return false
	}
	_, known, err := planeAt(p, 0)
	return known || err != nil
}

// planeAt reads a map, or the thumbnail of one that isn't stored. known is false where neither is.
func planeAt(p *results.CellMaps, i int) (plane thumbnail.Plane, known bool, err error) {
	if b, err := p.Maps.Load(i); err == nil {
		plane, err = thumbnail.PlaneOf(b)
		return plane, true, err
	}
	if p.Small == nil || i >= min(len(p.Small.Maps.IDs), len(p.Small.Ends.IDs)) {
		return plane, false, nil
	}
	levels, err := p.Small.Maps.Load(i)
	if err != nil {
		return plane, false, nil
	}
	ends, err := p.Small.Ends.Load(i)
	if err != nil {
		return plane, false, nil
	}
	plane, err = thumbnail.Decode(levels, ends)
	return plane, true, err
}

// pack compresses bytes as a browser unpacks them.
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

// photo encodes an image, made small, with its media type.
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
	if max(w, h) < thumbnail.Side { // pixels of so small an image are seen one by one
		err = png.Encode(&out, m)
		return out.Bytes(), "image/png", err
	}
	err = jpeg.Encode(&out, m, &jpeg.Options{Quality: 88})
	return out.Bytes(), "image/jpeg", err
}

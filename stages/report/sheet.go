package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// SheetParams are the parameters of [Sheet].
type SheetParams struct {
	Items   int    `yaml:"items" doc:"number of images, from the first" min:"1" max:"64"`
	Columns string `yaml:"columns" axis:"maps,optional" doc:"the axis whose ids are columns; default: the only axis"`
	Overlay bool   `yaml:"overlay" doc:"blend the colours with the image in grey"`
	Title   string `yaml:"title" doc:"a title"`
}

// Sheet shows maps in a grid, one row per image (and ids on the other axes), one column per method. If one of
// a column's maps has negative values, the column is coloured in red and blue around white at 0, and each
// map's scale ends at the 99.5th percentile of the absolute values shown. Otherwise the scale runs from the
// 0.5th to the 99.5th percentile of the values. The ends are printed below each map. Channels are summed.
var Sheet = stages.New(stages.Def[SheetParams]{
	Name: "report/sheet",
	Doc: `maps of the first images, next to the images

One row per image and, if more axes than columns are collapsed, per combination of
these; one column per id of the axis columns. If a map of a column has negative values,
red is evidence for the class and blue against it, and each map's scale ends at the
99.5th percentile of the absolute values shown; otherwise it runs from white at the
0.5th to dark at the 99.5th percentile of the values. The ends are printed below each
map. Constant maps and maps with undefined values are labelled as such.`,
	Version:  3,
	Relation: stages.Whole,
	Ordered:  true,
	Named:    true,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of all columns and rows"},
		{Name: "images", Type: stages.Images, Doc: "the images they explain"},
		{Name: "labels", Type: stages.Labels, Doc: "classes, named next to the images", Optional: true},
	},
	Outputs:  []stages.Port{{Name: "figure", Type: stages.Figure, Doc: "PNG"}},
	Defaults: SheetParams{Items: 6, Columns: "method"},
	Run:      runSheet,
})

// A tile is one map of the sheet, at the size at which it's drawn.
type tile struct {
	values    []float64
	state     string  // "", or a word displayed instead of the map
	low, high float64 // the ends of the scale if no value is negative
	scale     float64 // the end of the scale on both sides of 0 otherwise
}

// level returns a value's position on a colour map, from 0 to 1; 0.5 is 0 if the map is signed.
func (t *tile) level(v float64, signed bool) float64 {
	if signed {
		v = (v/t.scale + 1) / 2
	} else {
		v = (v - t.low) / (t.high - t.low)
	}
	return min(max(v, 0), 1)
}

// A sheetRow is an image with its maps by column; nil for a missing map.
type sheetRow struct {
	labels []string // lines of text next to the image
	photo  *picture.RGB
	tiles  []*tile
}

// A sheet is the content of the figure.
type sheet struct {
	side    int // of a tile, in pixels
	lines   int // number of text lines below a tile
	columns []string
	signed  []bool // by column
	rows    []sheetRow
	overlay bool
}

func runSheet(ctx context.Context, p SheetParams, e *stages.Env) error {
	maps, images := e.Ports["maps"], e.Ports["images"]
	axes := axesOf(maps)
	column := ""
	if len(axes) > 0 {
		var err error
		if column, err = oneAxis("columns", p.Columns, axes); err != nil {
			return err
		}
	}
	others := without(axes, column)
	s := &sheet{overlay: p.Overlay}
	for _, ids := range places(e.Order, maps, []string{column}) {
		s.columns = append(s.columns, ids[0])
	}
	s.signed = make([]bool, len(s.columns))
	origins, err := firstOrigins(images, p.Items)
	if err != nil {
		return err
	}
	groups := places(e.Order, maps, others)
	s.side = sideFor(len(origins) * len(groups) * (len(s.columns) + 1))
	for _, origin := range origins {
		for _, ids := range groups {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			row, err := s.row(e, origin, others, ids, column)
			if err != nil {
				return err
			}
			if row != nil {
				s.rows = append(s.rows, *row)
			}
		}
	}
	if len(s.rows) == 0 {
		return fmt.Errorf("none of the maps is of the first %s", count(len(origins), "image"))
	}
	e.Set("figure", s.draw())
	caption := fmt.Sprintf("Maps of the first %s; the numbers below a map are the ends of its colours, the "+
		"extreme half percent left out.", count(len(origins), "image"))
	if p.Title != "" {
		caption = p.Title + ": " + strings.ToLower(caption[:1]) + caption[1:]
	}
	e.SetFacts("figure", stages.Facts{"ext": "png", "caption": caption})
	return nil
}

// firstOrigins returns the ids of the first images.
func firstOrigins(images []stages.Data, n int) ([]string, error) {
	var ids []string
	for _, d := range images {
		for i := 0; i < d.Items.Len() && len(ids) < n; i++ {
			item, err := d.Items.At(i)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(ids, item.ID) {
				ids = append(ids, item.ID)
			}
		}
	}
	return ids, nil
}

// sideFor returns the largest side of a tile for which a figure of that many tiles stays small.
func sideFor(tiles int) int {
	const budget = 300_000 // pixels of tiles; noise compresses to about 5 bits each
	for _, side := range []int{112, 104, 96, 88, 80, 72, 64, 56} {
		if tiles*side*side <= budget {
			return side
		}
	}
	return 48
}

// row returns one image with its maps, or nil if it has none.
func (s *sheet) row(e *stages.Env, id string, others, ids []string, column string) (*sheetRow, error) {
	var place []stages.Coord
	for i, a := range others {
		place = append(place, stages.Coord{Axis: a, ID: ids[i]})
	}
	r := &sheetRow{tiles: make([]*tile, len(s.columns))}
	found := false
	for _, d := range e.Ports["maps"] {
		if !slices.Equal(pick(d.Coord, others), ids) {
			continue
		}
		b, err := payload(d, id)
		if err != nil || b == nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		k := slices.Index(s.columns, idOn(d.Coord, column))
		t, negative, err := s.tile(b)
		if err != nil {
			return nil, fmt.Errorf("map of %q: %w", id, err)
		}
		r.tiles[k], found = t, true
		s.signed[k] = s.signed[k] || negative
	}
	for _, d := range e.Ports["images"] {
		if !agree(place, d.Coord) {
			continue
		}
		b, err := payload(d, id)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		if r.photo, err = s.photo(b); err != nil {
			return nil, fmt.Errorf("image %q: %w", id, err)
		}
		break
	}
	if !found || r.photo == nil {
		return nil, nil
	}
	r.labels = append(r.labels, id)
	for _, d := range e.Ports["labels"] {
		if !agree(place, d.Coord) {
			continue
		}
		b, err := payload(d, id)
		if err != nil {
			return nil, err
		}
		if b != nil {
			x, err := stages.ScalarOf(b)
			if err != nil {
				return nil, fmt.Errorf("label of %q: %w", id, err)
			}
			r.labels = append(r.labels, className(d.Facts["labels"], int(x)))
			break
		}
	}
	if len(ids) > 0 {
		r.labels = append(r.labels, strings.Join(ids, " · "))
	}
	return r, nil
}

func className(names string, i int) string {
	if list := strings.Split(names, "\n"); i >= 0 && i < len(list) && list[i] != "" {
		return list[i]
	}
	return "class " + strconv.Itoa(i)
}

// payload returns the payload of an image on a port: of the item with that id, otherwise of the first derived
// from it.
func payload(d stages.Data, id string) ([]byte, error) {
	first := -1
	for i := range d.Items.Len() {
		item, err := d.Items.At(i)
		if err != nil {
			return nil, err
		}
		if item.ID == id {
			return d.Load(i)
		}
		if first < 0 && item.Origin == id {
			first = i
		}
	}
	if first < 0 {
		return nil, nil
	}
	return d.Load(first)
}

// photo decodes an image and resizes it to a tile.
func (s *sheet) photo(b []byte) (*picture.RGB, error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 3 || t.Shape[0] != 3 || t.Len() == 0 {
		return nil, fmt.Errorf("shape %v isn't that of an image", t.Shape)
	}
	h, w := t.Shape[1], t.Shape[2]
	pixels := t.Raw
	if t.DType != stages.U8 {
		pixels = make([]uint8, t.Len())
		for i, v := range t.Float64s() {
			if v > 0 { // false for NaN
				pixels[i] = uint8(math.Round(255 * min(v, 1)))
			}
		}
	}
	m := picture.FromPlanes(pixels, w, h)
	return m.Resize(s.side, s.side, picture.Bicubic())
}

// tile decodes a map and resizes it to a tile. negative reports whether the map has negative values.
func (s *sheet) tile(b []byte) (t *tile, negative bool, err error) {
	m, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, false, err
	}
	if n := len(m.Shape); n < 2 || n > 3 || m.Len() == 0 {
		return nil, false, fmt.Errorf("shape %v isn't that of a map", m.Shape)
	}
	h, w := m.Shape[len(m.Shape)-2], m.Shape[len(m.Shape)-1]
	sum := make([]float64, h*w)
	for i, v := range m.Float64s() {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &tile{state: "undefined"}, false, nil
		}
		sum[i%len(sum)] += v
	}
	if negative = slices.Min(sum) < 0; slices.Max(sum) == slices.Min(sum) {
		return &tile{state: "constant", scale: sum[0]}, negative, nil
	}
	t = &tile{values: picture.ResizePlane(sum, w, h, s.side, s.side, picture.Bilinear())}
	v := slices.Sorted(slices.Values(t.values))
	if t.low, t.high = percentile(v, 0.5), percentile(v, 99.5); t.low == t.high {
		t.low, t.high = v[0], v[len(v)-1] // fewer than one pixel in 200 differs
	}
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	slices.Sort(v)
	if t.scale = percentile(v, 99.5); t.scale == 0 {
		t.scale = v[len(v)-1]
	}
	return t, negative, nil
}

// percentile returns the smallest of the sorted values v that p percent of them don't exceed.
func percentile(v []float64, p float64) float64 {
	return v[max(int(math.Ceil(p/100*float64(len(v))))-1, 0)]
}

package report

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// SheetParams are the parameters of [Sheet].
type SheetParams struct {
	Chosen
	Columns string `yaml:"columns" axis:"maps,optional" doc:"the axis whose ids are columns; default: the only axis"`
	Order   string `yaml:"order" doc:"of the maps of an image: as the experiment lists the ids, or from the best score to the worst" choices:"written|score"`
	Scale   string `yaml:"scale" doc:"whether each map has its own colour scale, or those of a column or of the sheet share one" choices:"map|column|sheet"`
	Caption string `yaml:"caption" doc:"below an image: its class and probability, its id, both, or nothing" choices:"class|file|both|none"`
	Tile    int    `yaml:"tile" doc:"the shorter side of a map in points of 1/72 inch" min:"16" max:"400"`
	Width   int    `yaml:"width" doc:"the width of the figure in points above which a line of maps is broken" min:"100" max:"2000"`
	DPI     int    `yaml:"dpi" doc:"dots per inch of the PNG, at least: as many more as give a map's pixels whole dots" min:"72" max:"300"`
	Budget  int    `yaml:"budget" doc:"size of the PNG in kB above which it has fewer dots per inch, and with 72 isn't published" min:"20" max:"10000"`
	Overlay bool   `yaml:"overlay" doc:"blend the colours with the image in grey"`
	Title   string `yaml:"title" doc:"a title"`
	Grouped
}

// Sheet shows maps in a grid, one row per image (and ids on the other axes), one column per method. If one of
// a column's maps has negative values, the column is coloured in red and blue around white at 0, and each
// scale ends at the 99.5th percentile of the absolute values shown. Otherwise a scale runs from the 0.5th to
// the 99.5th percentile of the values. The ends are printed below each map. Channels are summed.
//
// The SVG and the PDF hold each map as an image in its own pixels, and text as text.
var Sheet = stages.New(stages.Def[SheetParams]{
	Name: "report/sheet",
	Doc: `maps next to the images that they explain

One row per image and, if more axes than columns are collapsed, per combination of
these; one column per id of the axis columns. Below an image stand its class and the
probability: wire targets and probability of model/predict, and labels for the names of
classes, of which WordNet's numbers are left out. With caption: file its id stands there.
Below a map stands its score, if scores is wired, and the ends of its colours.

The images are the first (items: 6), the first of each class (items: 12, per_class: 1),
those named (items: [a, b]), or those with the best and the worst scores of all (best:
5, worst: 5), by the port by, otherwise scores: by the mean, if an image has several.

With by, images stand in groups, by columns of dataset/columns, and items, per_class, best
and worst choose in each group; the group's name stands below an image. What by, parts and
edges mean is the same as in report/table. The input by is another thing: scores.

With order: score, maps stand from the best to the worst, under their names, and each id
on axes that only scores has is a row: how each metric ranks the same maps.

If a map of a column has negative values, red is evidence for the class and blue against
it, and a scale ends at the 99.5th percentile of the absolute values shown; otherwise it
runs from white at the 0.5th to dark at the 99.5th percentile of the values. Constant
maps and maps with undefined values are labelled as such. Masks, segments, boxes and the
cells of a grid are outlined.

SVG and PDF have text as text, and each map as an image in its own pixels, of whatever
size: tile says how large it is drawn. Photographs are JPEGs. The PNG is a preview: with
more than budget kB it has fewer dots per inch, which its caption says, and one that
exceeds them even with 72 isn't published. As many images are shown as are asked for;
which, and in which rows and columns, stands in cells/ of the review folder, under shown.`,
	Version:  7,
	Relation: stages.Whole,
	Ordered:  true,
	Named:    true,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of all columns and rows"},
		{Name: "images", Type: stages.Images, Doc: "the images they explain"},
		{Name: "labels", Type: stages.Labels, Doc: "labels, and the names of classes", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "the explained classes", Optional: true},
		{Name: "probability", Type: stages.Scores, Doc: "their probabilities", Optional: true},
		{Name: "scores", Type: stages.Scores, Doc: "scores of the maps, shown below them", Optional: true},
		{Name: "by", Type: stages.Scores, Doc: "scores that select the best and worst", Optional: true},
		{Name: "masks", Type: stages.Masks, Doc: "objects to outline", Optional: true},
		{Name: "boxes", Type: stages.Boxes, Doc: "boxes to outline", Optional: true},
		{Name: "cells", Type: stages.Boxes, Doc: "explained cells of grids, to outline", Optional: true},
		{Name: "segments", Type: stages.Segments, Doc: "segments to outline", Optional: true, Added: true},
		columnsPort,
	},
	Outputs: figurePorts(),
	Defaults: SheetParams{Chosen: chosen(), Columns: "method", Order: "written",
		Scale: "map", Caption: "class", Tile: 64, Width: 480, DPI: 144, Budget: 200,
		Grouped: Grouped{Parts: usualParts}},
	Check: func(p SheetParams, wired func(string) bool) error {
		if len(p.By) > 0 && p.Items.IDs != nil && p.Best+p.Worst == 0 {
			return stages.BadField("by", "by groups images that are chosen by number, and items lists ids")
		}
		if err := p.Grouped.check(wired); err != nil {
			return err
		}
		return p.Chosen.check(p.Order, wired)
	},
	Run: runSheet,
})

// A sheetRow is an image with its maps.
type sheetRow struct {
	choice  choice
	ids     []string // on the other axes
	labels  []string // their labels
	photo   *picture.RGB
	again   bool     // it is the image of the row above, with the same text
	notes   []string // paragraphs below the image, the first is prominent
	tiles   []*tile  // in the order in which they are shown; nil for a missing map
	outline outline
}

// A sheet is the content of the figure.
type sheet struct {
	boxW, boxH float64 // of a tile, in points
	width      float64 // of a line of tiles, at most
	columns    []string
	names      map[string]string // labels of the columns
	signed     map[string]bool   // by column
	rows       []*sheetRow
	words      string // description of the selected images
	sorted     bool
	sharing    string // SheetParams.Scale
	overlay    bool
	pixels     int // of all maps
}

// maxMapPixels bounds the memory of a sheet, which holds its maps: 4 bytes a pixel.
const maxMapPixels = 1 << 27

func runSheet(ctx context.Context, p SheetParams, e *stages.Env) error {
	s, err := p.sheet(ctx, e)
	if err != nil {
		return err
	}
	s.setScales()
	s.setAgain()
	return setPage(e, s.draw(), preview{p.DPI, s.dots(), p.Budget}, p.caption(e, s), s.shown())
}

// dots returns the dots per inch at which a pixel of the first map is one dot.
func (s *sheet) dots() float64 {
	for _, r := range s.rows {
		for _, t := range r.tiles {
			if t != nil && t.w > 0 {
				return 72 * float64(t.w) / s.frame(r, 0, 0).W
			}
		}
	}
	return 0
}

// shown lists the contents of the sheet.
func (s *sheet) shown() shown {
	out := shown{Columns: s.columns}
	for _, r := range s.rows {
		out.add(r.choice.id, r.ids)
	}
	return out
}

// sheet reads the images and their maps.
func (p SheetParams) sheet(ctx context.Context, e *stages.Env) (*sheet, error) {
	maps := e.Ports["maps"]
	axes := axesOf(maps)
	column := ""
	if len(axes) > 0 {
		var err error
		if column, err = oneAxis("columns", p.Columns, axes); err != nil {
			return nil, err
		}
	}
	s := &sheet{signed: map[string]bool{}, names: map[string]string{}, sharing: p.Scale,
		sorted: p.Order == "score", overlay: p.Overlay, width: float64(p.Width)}
	for _, ids := range places(e.Order, maps, []string{column}) {
		s.columns = append(s.columns, ids[0])
		s.names[ids[0]] = e.Label(column, ids[0])
	}
	spread := slices.Clone(maps) // over the axes of rows
	if s.sorted {
		spread = append(spread, e.Ports["scores"]...)
	}
	others := without(axesOf(spread), column)
	groups := rowsOf(e.Order, maps, spread, others)
	choices, words, err := p.choose(ctx, e)
	if err != nil {
		return nil, err
	}
	s.words = words
	for _, c := range choices {
		for _, ids := range groups {
			row := &sheetRow{choice: c, ids: ids}
			for i, id := range ids {
				row.labels = append(row.labels, e.Label(others[i], id))
			}
			found, err := p.open(e, row, coordsOf(others, ids))
			if err != nil {
				return nil, err
			}
			if found {
				s.rows = append(s.rows, row)
			}
		}
	}
	s.setBox(float64(p.Tile))
	for _, row := range s.rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := s.fill(e, row, coordsOf(others, row.ids), column); err != nil {
			return nil, err
		}
	}
	s.rows = slices.DeleteFunc(s.rows, func(r *sheetRow) bool {
		return !slices.ContainsFunc(r.tiles, func(t *tile) bool { return t != nil })
	})
	if len(s.rows) == 0 {
		return nil, fmt.Errorf("none of the maps is of %s", words)
	}
	return s, nil
}

// coordsOf returns the coordinates of ids.
func coordsOf(axes, ids []string) []stages.Coord {
	var place []stages.Coord
	for i, a := range axes {
		if ids[i] != "" {
			place = append(place, stages.Coord{Axis: a, ID: ids[i]})
		}
	}
	return place
}

// rowsOf returns the places of rows: the maps' ids on the axes, combined with the scores' that agree with
// them. A place is left out if another one has the same ids and more: maps have no metric, but their scores
// have.
func rowsOf(order stages.Order, maps, spread []stages.Data, axes []string) [][]string {
	var all []stages.Data
	for _, m := range maps {
		for _, d := range spread {
			if !agree(m.Coord, d.Coord) {
				continue
			}
			var both stages.Data
			for _, a := range axes {
				id := idOn(m.Coord, a)
				if id == "" {
					id = idOn(d.Coord, a)
				}
				both.Coord = append(both.Coord, stages.Coord{Axis: a, ID: id})
			}
			all = append(all, both)
		}
	}
	rows := places(order, all, axes)
	return slices.DeleteFunc(slices.Clone(rows), func(p []string) bool {
		return slices.ContainsFunc(rows, func(q []string) bool { return vaguer(p, q) })
	})
}

// vaguer reports whether p lacks ids that q has, and otherwise equals it.
func vaguer(p, q []string) bool {
	lacks := false
	for i := range p {
		if p[i] != q[i] && p[i] != "" {
			return false
		}
		lacks = lacks || p[i] != q[i]
	}
	return lacks
}

// setAgain finds the rows with the same image as the row above them.
func (s *sheet) setAgain() {
	for i, r := range s.rows {
		if r.again = false; i > 0 {
			above := s.rows[i-1]
			r.again = slices.Equal(r.notes, above.notes) && r.photo.W == above.photo.W &&
				bytes.Equal(r.photo.Pix, above.photo.Pix)
		}
	}
}

// open reads the image of a row. found is false if there is none.
func (p SheetParams) open(e *stages.Env, r *sheetRow, place []stages.Coord) (found bool, err error) {
	id := r.choice.id
	b, err := payloadAt(e.Ports["images"], id, place)
	if err != nil || b == nil {
		return false, err
	}
	if r.photo, err = photoOf(b); err != nil {
		return false, fmt.Errorf("image %q: %w", id, err)
	}
	if r.notes, err = notesOf(e, p.Caption, r.choice, place); err != nil {
		return false, err
	}
	r.outline, err = outlineOf(e, id, place, r.photo)
	return true, err
}

// setBox sets the size of tiles by the largest image; one whose edges differ by more than a factor of two
// is drawn smaller.
func (s *sheet) setBox(side float64) {
	w, h := 1, 1
	for _, r := range s.rows {
		if r.photo.W*r.photo.H > w*h {
			w, h = r.photo.W, r.photo.H
		}
	}
	ratio := float64(w) / float64(h)
	s.boxW, s.boxH = side*min(max(ratio, 1), 2), side*min(max(1/ratio, 1), 2)
}

// fill reads the maps of an image and their scores.
func (s *sheet) fill(e *stages.Env, r *sheetRow, place []stages.Coord, column string) error {
	id := r.choice.id
	r.tiles = make([]*tile, len(s.columns))
	for _, d := range e.Ports["maps"] {
		if !agree(place, d.Coord) {
			continue
		}
		b, err := payload(d, id)
		if err != nil || b == nil {
			if err != nil {
				return err
			}
			continue
		}
		name := idOn(d.Coord, column)
		t, negative, err := tileOf(b)
		if err != nil {
			return fmt.Errorf("map of %q: %w", id, err)
		}
		if s.pixels += len(t.values); s.pixels > maxMapPixels {
			return fmt.Errorf("the maps have more than %d pixels: ask for fewer images", maxMapPixels)
		}
		t.column = name
		if t.scores, err = scoresAt(e, id, slices.Concat(place, d.Coord)); err != nil {
			return err
		}
		r.tiles[slices.Index(s.columns, name)] = t
		s.signed[name] = s.signed[name] || negative
	}
	if s.sorted {
		for _, t := range r.tiles {
			if t != nil && len(t.scores) > 0 && t.scores[0].direction == stages.None {
				return errors.New("port scores: some have no better end, so maps can't be sorted by them")
			}
		}
		slices.SortStableFunc(r.tiles, compareTiles)
	}
	return nil
}

// compareTiles orders tiles from the best score to the worst, then those without a score, then missing
// ones.
func compareTiles(a, b *tile) int {
	value := func(t *tile) (lacks int, x float64) {
		switch {
		case t == nil:
			return 2, 0
		case len(t.scores) == 0 || math.IsNaN(t.scores[0].value):
			return 1, 0
		case t.scores[0].direction == stages.Lower:
			return 0, t.scores[0].value
		}
		return 0, -t.scores[0].value
	}
	lacksA, x := value(a)
	lacksB, y := value(b)
	return cmp.Or(cmp.Compare(lacksA, lacksB), cmp.Compare(x, y))
}

package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/metric"
)

// AggAttParams are the parameters of [AggAtt].
type AggAttParams struct {
	Rows    []string `yaml:"rows" axis:"maps,optional" doc:"the axes whose ids are rows, the slowest first; other axes are appended"`
	Cell    int      `yaml:"cell" doc:"the cell whose maps are shown, row by row from 0; maps that explain others are left out" min:"0" max:"63"`
	Values  string   `yaml:"values" doc:"what is shown: the positive part of maps, or maps as they are" choices:"positive|signed"`
	Variant string   `yaml:"variant" doc:"paper: a map without positive relevance has no score and is left out; official: it scores 0, as does one whose total is 1e-7 or less" choices:"paper|official"`
	Title   string   `yaml:"title" doc:"a title"`
	Tile    int      `yaml:"tile" doc:"the shorter side of a map in points of 1/72 inch" min:"16" max:"400"`
	DPI     int      `yaml:"dpi" doc:"dots per inch of the PNG, at least: as many more as give a map's pixels whole dots" min:"72" max:"300"`
	Budget  int      `yaml:"budget" doc:"size of the PNG in kB above which it has fewer dots per inch, and with 72 isn't published" min:"20" max:"10000"`
}

// AggAtt aggregates maps of grids as Rao, Böhle and Schiele, "Towards Better Understanding Attribution
// Methods", CVPR 2022, section 3.2: sorted by how well they point at the explained cell, in bins, whose mean
// maps are shown on one scale.
var AggAtt = stages.New(stages.Def[AggAttParams]{
	Name: "report/aggatt",
	Doc: `mean maps of grids, from the best to the worst

Maps of grids are sorted by their share of positive relevance in the explained cell
(score/grid-pointing), and by the relevance there. Each tile is the mean map of a bin: the
best 2 %, up to 5, 50, 95, 98 and 100 %, and at least one map. The bins of a row share a
scale, which ends at the 99.5th percentile of their magnitudes: white is 0, green for the
class, red against it. On the left stands the map in the middle of the best bin, on the
right that of the worst, each on its own scale; all ends are printed below. A row for
each combination of the collapsed axes, sorted by those of rows first. Rao, Böhle and
Schiele, CVPR 2022.

SVG and PDF have text as text and each map as an image in the pixels of the grid. The PNG
is a preview: with more than budget kB it has fewer dots per inch, and one that exceeds
them even with 72 isn't published.`,
	Version:  6,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of grids"},
		{Name: "cells", Type: stages.Boxes, Doc: "the explained cells; facts: height, width, grid"},
		{Name: "images", Type: stages.Images, Doc: "the grids, shown next to the examples", Optional: true},
	},
	Outputs: figurePorts(stages.Port{Name: "bins", Type: stages.TableType,
		Doc: "one row per row of the figure and bin"}),
	Variants: []stages.Variant{{
		Item: "maps without positive relevance", Default: "paper",
		Differs: "the score divides by zero, so such maps are left out, and counted; the official code " +
			"sorts them last; and it divides the sum of a bin by its share of all maps, rounded down, " +
			"which may be one less than there are",
		Golden: "aggatt",
	}},
	Defaults: AggAttParams{Values: metric.Positive, Variant: "paper", Tile: 40, DPI: 144, Budget: 200},
	Run:      runAggAtt,
	Hooks:    func(AggAttParams) stages.Hooks { return stages.Hooks{Few: fewForBins} },
})

// fewForBins reports that there are fewer maps than give the first bin one.
func fewForBins(in map[string]stages.Amount) error {
	least := int(math.Ceil(1 / binEnds[0]))
	if n := in["maps"].Items; n < least {
		return fmt.Errorf("bins of %g %% take %d maps that explain the cell, there are at most %d",
			100*binEnds[0], least, n)
	}
	return nil
}

// binEnds are the fractions of the maps at which bins end, from the best.
var binEnds = [...]float64{0.02, 0.05, 0.5, 0.95, 0.98, 1}

// binsOf returns the bounds of the bins of n maps: the fractions of n, rounded down as in the official
// code, and moved if a bin would be empty. n must be at least the number of bins.
func binsOf(n int) []int {
	ends := []int{0}
	for k, share := range binEnds {
		end := int(share*float64(n) + 1e-9)
		ends = append(ends, min(max(end, ends[k]+1), n-(len(binEnds)-1-k)))
	}
	return ends
}

// A ranked is a map with its score.
type ranked struct {
	item          int
	share, inside float64
}

// sorted sorts maps from the best to the worst; equal ones keep their order.
func sorted(list []ranked) {
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(-cmp.Compare(a.share, b.share), -cmp.Compare(a.inside, b.inside))
	})
}

// An aggregate is a row of the figure.
type aggregate struct {
	ids, labels   []string
	height, width int
	mask          []uint8 // of the cell
	outline       outline
	order         []ranked
	undefined     int
	bins          []int // bounds, in order
	maps          [][]float64
	scale         float64
	best, worst   example
}

// An example is a single map.
type example struct {
	share  float64
	item   string // its id
	values []float64
	scale  float64
	image  []byte // payload; nil without images
}

func runAggAtt(ctx context.Context, p AggAttParams, e *stages.Env) error {
	if rows := slices.Sorted(slices.Values(p.Rows)); len(slices.Compact(rows)) < len(p.Rows) {
		return stages.BadField("rows", "an axis is named twice")
	}
	maps := e.Ports["maps"]
	axes := slices.Concat(p.Rows, without(axesOf(maps), p.Rows...))
	var rows []*aggregate
	for _, ids := range places(e.Order, maps, axes) {
		for _, d := range maps {
			if !slices.Equal(pick(d.Coord, axes), ids) {
				continue
			}
			a, err := p.aggregate(ctx, e, d)
			if err != nil {
				return fmt.Errorf("%s%w", rowName(ids), err)
			}
			a.ids = ids
			for i, id := range ids {
				a.labels = append(a.labels, e.Label(axes[i], id))
			}
			rows = append(rows, a)
			e.Done(1)
		}
	}
	e.Set("bins", binTable(p, axes, rows).Encode())
	page, whole := p.draw(rows)
	return setPage(e, page, preview{p.DPI, whole, p.Budget}, p.caption(rows), p.shown(rows))
}

// rowName names a row in errors.
func rowName(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return strings.Join(ids, " ") + ": "
}

// aggregate sorts the maps of one upstream cell and adds up the maps of each bin. It reads them twice, so
// that its memory doesn't depend on their number.
func (p AggAttParams) aggregate(ctx context.Context, e *stages.Env, d stages.Data) (*aggregate, error) {
	cells, err := cellsOf(ctx, e, d)
	if err != nil {
		return nil, err
	}
	a := &aggregate{height: cells.height, width: cells.width, mask: cells.mask(p.Cell)}
	if a.mask == nil {
		return nil, stages.BadField("cell", "cell is %d, and the grids have %d cells", p.Cell,
			cells.side*cells.side)
	}
	a.outline = cells.outline(p.Cell)
	i := 0
	for m, err := range d.All(ctx) {
		if err != nil {
			return nil, err
		}
		if cells.of[m.ID] == p.Cell+1 {
			r, ok, err := p.rank(a, m.Data)
			switch {
			case err != nil:
				return nil, fmt.Errorf("item %q: %w", m.ID, err)
			case ok:
				r.item = i
				a.order = append(a.order, r)
			default:
				a.undefined++
			}
		}
		i++
	}
	if n := len(a.order); n < len(binEnds) {
		return nil, fmt.Errorf("%s with a score for cell %d: each of the %d bins needs one",
			english.Count(n, "map"), p.Cell, len(binEnds))
	}
	sorted(a.order)
	a.bins = binsOf(len(a.order))
	for k := range binEnds {
		mean := make([]float64, a.height*a.width)
		size := p.divisor(a, k)
		for _, r := range a.order[a.bins[k]:a.bins[k+1]] {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			v, err := p.values(a, d, r.item)
			if err != nil {
				return nil, err
			}
			for i, x := range v {
				mean[i] += x / size
			}
		}
		a.maps = append(a.maps, mean)
	}
	a.scale = scaleOf(a.maps...)
	if a.best, err = p.example(e, a, d, 0); err != nil {
		return nil, err
	}
	a.worst, err = p.example(e, a, d, len(binEnds)-1)
	return a, err
}

// divisor returns the number by which the sum of a bin's maps is divided: the number of maps; in the
// official code the bin's fraction of all maps, rounded down, from which binary fractions sometimes
// subtract one.
func (p AggAttParams) divisor(a *aggregate, bin int) float64 {
	size := a.bins[bin+1] - a.bins[bin]
	if p.Variant == "official" {
		begin := 0.0
		if bin > 0 {
			begin = binEnds[bin-1]
		}
		size = max(int(float64(len(a.order))*(binEnds[bin]-begin)), 1)
	}
	return float64(size)
}

// rank returns the score of a map; false if it has none.
func (p AggAttParams) rank(a *aggregate, payload []byte) (r ranked, ok bool, err error) {
	v, err := metric.Enlarged(payload, a.height, a.width)
	if err != nil {
		return r, false, err
	}
	total := metric.KeepPositive(v)
	for i, x := range v {
		if a.mask[i] != 0 {
			r.inside += x
		}
	}
	switch r.share = r.inside / total; {
	case math.IsNaN(total) || math.IsInf(total, 0):
		return r, false, nil
	case p.Variant == "official" && total <= 1e-7:
		r.share = 0
	}
	return r, !math.IsNaN(r.share), nil
}

// values returns the displayed values of a map.
func (p AggAttParams) values(a *aggregate, d stages.Data, item int) ([]float64, error) {
	b, err := d.Load(item)
	if err != nil {
		return nil, err
	}
	v, err := metric.Enlarged(b, a.height, a.width)
	if err == nil && p.Values == metric.Positive {
		metric.KeepPositive(v)
	}
	return v, err
}

// scaleOf returns the 99.5th percentile of the magnitudes in maps: the value at that fraction of the sorted
// ones, rounded down. If it is 0 it returns 1, so that maps aren't scaled.
func scaleOf(maps ...[]float64) float64 {
	var all []float64
	for _, m := range maps {
		for _, v := range m {
			all = append(all, math.Abs(v))
		}
	}
	slices.Sort(all)
	if s := threshold(all, 99.5); s > 0 {
		return s
	}
	return 1
}

// threshold returns the value at a percentage of sorted values.
func threshold(sorted []float64, percent float64) float64 {
	return sorted[int(float64(len(sorted))*percent/100)]
}

// example returns the map in the middle of a bin.
func (p AggAttParams) example(e *stages.Env, a *aggregate, d stages.Data, bin int) (x example, err error) {
	r := a.order[(a.bins[bin]+a.bins[bin+1])/2]
	x.share = r.share
	if x.values, err = p.values(a, d, r.item); err != nil {
		return x, err
	}
	x.scale = scaleOf(x.values)
	item, err := d.Items.At(r.item)
	if err != nil {
		return x, err
	}
	x.item = item.ID
	for _, images := range e.Ports["images"] {
		if !agree(d.Coord, images.Coord) {
			continue
		}
		x.image, err = payload(images, item.ID)
		break
	}
	return x, err
}

// The cells of the grids that the items of a port of maps explain.
type explainedCells struct {
	side, height, width int
	of                  map[string]int // by item: the cell, from 1
}

// cellsOf reads the cells of maps.
func cellsOf(ctx context.Context, e *stages.Env, maps stages.Data) (*explainedCells, error) {
	for _, d := range e.Ports["cells"] {
		if !agree(maps.Coord, d.Coord) {
			continue
		}
		c := &explainedCells{of: map[string]int{}}
		for name, to := range map[string]*int{"grid": &c.side, "height": &c.height, "width": &c.width} {
			n, err := strconv.Atoi(d.Facts[name])
			if err != nil || n < 1 {
				return nil, fmt.Errorf("the input \"cells\" has no fact %q: wire the cells of mosaic/grid",
					name)
			}
			*to = n
		}
		for m, err := range d.All(ctx) {
			if err != nil {
				return nil, err
			}
			t, err := stages.DecodeTensor(m.Data)
			if err != nil || t.Len() != 4 {
				return nil, fmt.Errorf("item %q: no box of a cell", m.ID)
			}
			box := t.Float64s()
			column, row := int(box[0])*c.side/c.width, int(box[1])*c.side/c.height
			c.of[m.ID] = row*c.side + column + 1
		}
		return c, nil
	}
	return nil, fmt.Errorf("there are no cells of these maps")
}

// mask returns the pixels of a cell, nil if there is no such cell.
func (c *explainedCells) mask(cell int) []uint8 {
	if cell >= c.side*c.side {
		return nil
	}
	mask := make([]uint8, c.height*c.width)
	h, w := c.height/c.side, c.width/c.side
	for y := cell / c.side * h; y < (cell/c.side+1)*h; y++ {
		for x := cell % c.side * w; x < (cell%c.side+1)*w; x++ {
			mask[y*c.width+x] = 1
		}
	}
	return mask
}

// outline outlines the cells, and one of them twice.
func (c *explainedCells) outline(cell int) outline {
	n := float64(c.side)
	x, y := float64(cell%c.side)/n, float64(cell/c.side)/n
	return outline{grid: c.side, boxes: [][4]float64{{x, y, x + 1/n, y + 1/n}}}
}

// caption describes the numbers of maps in bins, and the excluded maps.
func (p AggAttParams) caption(rows []*aggregate) string {
	sizes, left := []string{}, 0
	for _, a := range rows {
		var of []string
		for k := range binEnds {
			of = append(of, strconv.Itoa(a.bins[k+1]-a.bins[k]))
		}
		left += a.undefined
		text := fmt.Sprintf("%s of %d maps", strings.Join(of, ", "), len(a.order))
		if !slices.Contains(sizes, text) {
			sizes = append(sizes, text)
		}
	}
	shown := "the positive part"
	if p.Values != metric.Positive {
		shown = "signed"
	}
	text := fmt.Sprintf("Mean maps of bins from the best to the worst at pointing at cell %d, %s, and the "+
		"middle map of the best and of the worst bin. Bins end at 2, 5, 50, 95, 98 and 100 %%, rounded down "+
		"to whole maps with at least one in each: %s.", p.Cell, shown, strings.Join(sizes, "; "))
	if left > 0 {
		text += fmt.Sprintf(" %s without a score left out.", english.Count(left, "map"))
	}
	if p.Title != "" {
		text = p.Title + ": " + strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// binTable has a row for each bin of each row of the figure.
func binTable(p AggAttParams, axes []string, rows []*aggregate) stages.Table {
	t := stages.Table{Title: p.Title, Keys: append(slices.Clone(axes), "bin"), Numbers: []stages.Column{
		{Name: "maps"},
		{Name: "mean", Unit: "share", Direction: stages.Higher, Tolerance: 1e-4, Digits: meanDigits},
		{Name: "best", Unit: "share", Direction: stages.Higher, Tolerance: 5e-3, Digits: meanDigits},
		{Name: "worst", Unit: "share", Direction: stages.Higher, Tolerance: 5e-3, Digits: meanDigits},
	}}
	if t.Title == "" {
		t.Title = "share of the relevance in the explained cell, by bin"
	}
	for _, a := range rows {
		for k := range binEnds {
			bin, mean := a.order[a.bins[k]:a.bins[k+1]], 0.0
			for _, r := range bin {
				mean += r.share / float64(len(bin))
			}
			t.Rows = append(t.Rows, stages.Row{Keys: append(slices.Clone(a.ids), binNames[k]),
				Numbers: []stages.Number{stages.Number(len(bin)), stages.Number(mean),
					stages.Number(bin[0].share), stages.Number(bin[len(bin)-1].share)}})
		}
	}
	return t
}

// binNames name the bins by the fractions at their ends.
var binNames = [...]string{"0–2 %", "2–5 %", "5–50 %", "50–95 %", "95–98 %", "98–100 %"}

package webpage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
)

// A removal is what the curves of one cell replace at each point: pixels of images, in the order of a map's
// ranks. The map itself can't tell it: its levels are rounded, and ties are drawn.
//
// The steps of an item, a byte for each pixel, are in a blob: how many of the bounds, places in the order,
// aren't above the pixel's place. Replaced are the first units in the order, those whose step is at most k at
// the point k, or in the order lerf the last ones, whose step is above that of the last point less k. So both
// orders, and insertions, share a blob if their points are symmetrical.
type removal struct {
	Stage  string      `json:"stage"`
	Axes   []string    `json:"axes"`
	IDs    []string    `json:"ids"` // by axis
	Items  int         `json:"items"`
	Images int         `json:"images"`
	Order  string      `json:"order"`
	Unit   string      `json:"unit"`
	By     string      `json:"by"` // what stands in the place of a unit
	Blob   int         `json:"blob"`
	Size   [2]int      `json:"size"`   // width and height of the images of the net
	Shares []number    `json:"shares"` // by point, as they were asked for
	Points [][]int     `json:"points"` // the units replaced at each point, of all items or of each
	Units  []int       `json:"units"`  // of all items or of each; 0 for an item without an order
	Names  []string    `json:"responses"`
	Values [][][]value `json:"values"` // by item and response; an item without a curve has none
}

const (
	mostSteps        = 254     // points of a curve that bytes can count, besides the first
	mostRemovedBytes = 3 << 20 // of all steps before compression
)

// A stepsKey distinguishes the steps of some items.
type stepsKey struct{ ranks, bounds string }

// addRemovals adds what the curves replace that the page draws, of the first images, of which the page has at
// most that many.
func (m *model) addRemovals(list []*results.CellMaps, most int, images map[string]int) error {
	drawn := map[string][]string{} // responses by stage
	for _, t := range m.Tables {
		for _, c := range t.Curves {
			if !slices.Contains(drawn[c.Stage], t.Response) {
				drawn[c.Stage] = append(drawn[c.Stage], t.Response)
			}
		}
	}
	before := func(at stages.Coord) bool { return at.Axis == versionAxis } // whose curves no table is of
	shown := func(p *results.CellMaps, c results.Curve) bool {
		return drawn[publish.StageOf(c.Cell)] != nil && slices.Contains(ordered, c.Order) &&
			!slices.ContainsFunc(p.Coord, before) && p.Images != nil && c.Replaces != nil &&
			len(c.Ranks.IDs) > 0
	}
	most = m.mostRemoved(list, shown, most)
	if most == 0 {
		return nil
	}
	blobs := map[stepsKey]int{}
	left := map[string]bool{}
	for _, p := range list {
		for _, c := range p.Curves {
			if !shown(p, c) {
				continue
			}
			r, err := m.removalOf(c, drawn[publish.StageOf(c.Cell)], most, blobs)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Cell, err)
			}
			if r == nil {
				left[publish.StageOf(c.Cell)] = true
				continue
			}
			if r.Images, err = m.imageList(p, most, images); err != nil {
				return fmt.Errorf("images of %s: %w", p.Cell, err)
			}
			m.Removals = append(m.Removals, r)
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(left)) {
		m.Unshown = append(m.Unshown, fmt.Sprintf("The pixels that %s replaces aren't shown: the store "+
			"lost their order, or its curves have more than %d points, or points that don't ascend.",
			stage, mostSteps+1))
	}
	return nil
}

// mostRemoved returns of how many images what the curves replace fits into the page.
func (m *model) mostRemoved(list []*results.CellMaps, shown func(*results.CellMaps, results.Curve) bool,
	most int) int {
	sizes, total := map[string]int{}, 0
	for _, p := range list {
		for _, c := range p.Curves {
			if !shown(p, c) {
				continue
			}
			total = max(total, min(len(c.Ranks.IDs), most))
			if t, err := ranksAt(c, 0); err == nil && t != nil {
				sizes[c.Ranks.At] = t.Len()
			}
		}
	}
	each := 0
	for _, n := range sizes {
		each += n
	}
	fit := min(total, mostRemovedBytes/max(each, 1))
	if fit < total {
		m.Unshown = append(m.Unshown, fmt.Sprintf("What is replaced is shown in the first %d of %d "+
			"images: the page would be too large.", fit, total))
	}
	return fit
}

// ranksAt reads the ranks of an item, nil for a map without an order and for what the store lost.
func ranksAt(c results.Curve, i int) (*stages.Tensor, error) {
	b, err := c.Ranks.Load(i)
	if err != nil {
		return nil, nil
	}
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, err
	}
	if t.DType != stages.U32 || len(t.Shape) != 2 {
		return nil, fmt.Errorf("ranks of shape %v aren't those of an image", t.Shape)
	}
	if t.Len() == 0 {
		return nil, nil
	}
	return &t, nil
}

// removalOf reads what the curves of a cell replace in the first images, and some responses. It returns nil
// if the store lost it, or a byte can't count the points.
func (m *model) removalOf(c results.Curve, names []string, most int, blobs map[stepsKey]int) (*removal,
	error) {
	ids := c.Ranks.IDs[:min(len(c.Ranks.IDs), most)]
	r := &removal{Stage: publish.StageOf(c.Cell), Axes: []string{}, IDs: []string{}, Items: m.list(ids),
		Order: c.Order, Unit: cmp.Or(c.Unit, "pixel"), By: c.Replaces.By, Names: names}
	for _, at := range c.Coord {
		r.Axes, r.IDs = append(r.Axes, at.Axis), append(r.IDs, at.ID)
	}
	ranks := make([][]uint32, len(ids))
	for i := range ids {
		t, err := ranksAt(c, i)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", ids[i], err)
		}
		units, points := 0, []int{}
		if t != nil {
			ranks[i], r.Size = t.Uint32s(), [2]int{t.Shape[1], t.Shape[0]}
			units = int(slices.Max(ranks[i])) + 1
			points = c.Replaces.Points(units, slices.Max(t.Shape))
		}
		if len(points) > mostSteps+1 || !slices.IsSorted(points) {
			return nil, nil
		}
		r.Units, r.Points = append(r.Units, units), append(r.Points, points)
		rows, err := responsesAt(c, names, i)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", ids[i], err)
		}
		r.Values = append(r.Values, rows)
	}
	if r.Size == [2]int{} {
		return nil, nil
	}
	bounds := boundsOf(r)
	key := stepsKey{c.Ranks.At, fmt.Sprint(bounds)}
	at, known := blobs[key]
	if !known {
		var steps []byte
		for i := range ids {
			steps = append(steps, stepsOf(ranks[i], bounds[i], r.Size[0]*r.Size[1])...)
		}
		packed, err := pack(steps)
		if err != nil {
			return nil, err
		}
		at, m.blobs = len(m.blobs), append(m.blobs, packed)
		blobs[key] = at
	}
	r.Blob, r.Shares = at, sharesOf(c.Shares, r.Points)
	if same := func(a, b []int) bool { return slices.Equal(a, b) }; len(slices.CompactFunc(
		slices.Clone(r.Points), same)) == 1 && len(slices.Compact(slices.Clone(r.Units))) == 1 {
		r.Points, r.Units = r.Points[:1], r.Units[:1]
	}
	return r, nil
}

// boundsOf returns the bounds of each item: the points, or those that leave as many units at the end of the
// order.
func boundsOf(r *removal) [][]int {
	bounds := make([][]int, len(r.Points))
	for i, points := range r.Points {
		bounds[i] = slices.Clone(points)
		if r.Order == "lerf" {
			slices.Reverse(bounds[i])
			for k, n := range bounds[i] {
				bounds[i][k] = r.Units[i] - n
			}
		}
	}
	return bounds
}

// stepsOf returns of each of n pixels how many of the bounds aren't above its place in the order, zeros
// without an order.
func stepsOf(ranks []uint32, bounds []int, n int) []byte {
	steps := make([]byte, n)
	for p, place := range ranks[:min(len(ranks), n)] {
		k, _ := slices.BinarySearch(bounds, int(place)+1)
		steps[p] = byte(k)
	}
	return steps
}

// responsesAt reads some responses of the curve of an item, nothing if the store lost it.
func responsesAt(c results.Curve, names []string, i int) ([][]value, error) {
	rows := [][]value{}
	if !slices.Equal(c.Values.IDs, c.Ranks.IDs) {
		return rows, nil
	}
	b, err := c.Values.Load(i)
	if err != nil {
		return rows, nil
	}
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return nil, err
	}
	if len(t.Shape) != 2 || t.Shape[0] != len(c.Responses) {
		return rows, nil
	}
	for _, name := range names {
		values := []value{}
		if at := slices.Index(c.Responses, name); at >= 0 {
			for _, v := range t.Float64s()[at*t.Shape[1] : (at+1)*t.Shape[1]] {
				values = append(values, value(v))
			}
		}
		rows = append(rows, values)
	}
	return rows, nil
}

// sharesOf returns the shares of a fact or, without it, equidistant ones.
func sharesOf(fact string, points [][]int) []number {
	n := 0
	for _, p := range points {
		n = max(n, len(p))
	}
	shares := make([]number, n)
	fields := strings.Split(fact, ",")
	for k := range shares {
		shares[k] = number(float64(k) / math.Max(float64(n-1), 1))
		if fact != "" && k < len(fields) {
			if x, err := strconv.ParseFloat(fields[k], 64); err == nil {
				shares[k] = number(x)
			}
		}
	}
	return shares
}

// A curveSource is a stage whose curves another one reads, with the ids that these have there on axes that
// the input adds.
type curveSource struct {
	Stage string   `json:"stage"`
	Axes  []string `json:"axes"`
	IDs   []string `json:"ids"`
}

// setCurves says of each table which curves its stage may read, and which response of theirs.
func (m *model) setCurves(f *publish.Folder) {
	response := map[string]string{}
	for _, l := range f.Lines {
		var p struct{ Response any }
		if json.Unmarshal(l.Params, &p) == nil {
			response[publish.StageOf(l.Cell)], _ = p.Response.(string)
		}
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		if t.Response = response[t.Stage]; t.Response != "" {
			t.Curves = sourcesOf(f.Experiment, t.Stage)
		}
	}
}

// sourcesOf lists the stages that the inputs of a stage read.
func sourcesOf(experiment []byte, stage string) (list []curveSource) {
	var e struct {
		Stages map[string]struct{ In map[string]yaml.Node }
	}
	if yaml.Unmarshal(experiment, &e) != nil {
		return nil
	}
	var walk func(n *yaml.Node, axes, ids []string)
	walk = func(n *yaml.Node, axes, ids []string) {
		switch n.Kind {
		case yaml.ScalarNode:
			name, _, _ := strings.Cut(n.Value, ".")
			name, _, _ = strings.Cut(name, "[")
			list = append(list, curveSource{name, listOf(axes), listOf(ids)})
		case yaml.MappingNode: // an axis, and below it its ids
			for i := 1; i < len(n.Content); i += 2 {
				axis, of := n.Content[i-1], n.Content[i]
				below := append(slices.Clone(axes), axis.Value)
				for k := 1; of.Kind == yaml.MappingNode && k < len(of.Content); k += 2 {
					walk(of.Content[k], below, append(slices.Clone(ids), of.Content[k-1].Value))
				}
			}
		}
	}
	in := e.Stages[stage].In
	for _, port := range slices.Sorted(maps.Keys(in)) {
		n := in[port]
		walk(&n, nil, nil)
	}
	return list
}

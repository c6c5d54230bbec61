package webpage

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/thumbnail"
)

// A mapStage has the maps of all cells of one stage.
type mapStage struct {
	Stage string    `json:"stage"`
	Axes  []string  `json:"axes"`
	Cells []mapCell `json:"cells"`
}

// A mapCell has the maps of one cell. Their levels, one map after another, are in an element of the page of
// their own, a blob.
type mapCell struct {
	IDs     []string    `json:"ids"` // by axis of the stage
	Cell    string      `json:"cell"`
	Items   int         `json:"items"` // the position of the items' ids
	Blob    int         `json:"blob"`
	Sizes   [][2]int    `json:"sizes"`          // width and height on the page, of all maps or of each item's
	Full    [][2]int    `json:"full,omitempty"` // of the maps themselves, if not all are shown so; −1 if lost
	Signed  bool        `json:"signed,omitempty"`
	Ends    [][2]number `json:"ends"` // the values of the levels 1 and 255, of each item's map
	States  []string    `json:"states,omitempty"`
	Images  int         `json:"images"`  // the position of the images, −1 for none
	Classes int         `json:"classes"` // the position of the classes, −1 for none
}

// An imageList is the images of one port, by item.
type imageList struct {
	Items   int      `json:"items"`
	Sources []string `json:"src"` // data URLs, "" for an image that the store lost
}

// A classList is the explained classes, and the predicted ones if the run has them.
type classList struct {
	Items int `json:"items"`
	classNames
	Predicted *classNames `json:"predicted,omitempty"`
	True      []string    `json:"true,omitempty"`  // the labels of the images
	Wrong     []int       `json:"wrong,omitempty"` // the positions of items that the net takes for another class
}

// A classNames has the names of classes, with their probabilities if these are known.
type classNames struct {
	Names       []string `json:"names"`
	Probability []number `json:"p,omitempty"`

	index []int64 // of the classes, −1 for none: several may have one name
}

// versionAxis distinguishes the maps of the version before from the current ones.
const versionAxis = "version"

// versions returns those maps of before that differ from the current ones of the same cell, if the store
// has both. On versionAxis they have the id before.
func versions(now, before []*results.CellMaps) (changed []*results.CellMaps) {
	index := map[string]*results.CellMaps{}
	for _, p := range now {
		index[p.Cell] = p
	}
	for _, p := range before {
		q := index[p.Cell]
		if q == nil || !hasMaps(p) || !hasMaps(q) || sameMaps(p.Maps, q.Maps) {
			continue
		}
		was := *p
		was.Coord = append(slices.Clone(p.Coord), stages.Coord{Axis: versionAxis, ID: "before"})
		changed = append(changed, &was)
	}
	return changed
}

func sameMaps(a, b *results.Payloads) bool {
	if !slices.Equal(a.IDs, b.IDs) {
		return false
	}
	for i := range a.IDs {
		if a.Digest(i) != b.Digest(i) {
			return false
		}
	}
	return true
}

// addMaps adds the maps with their images and classes.
func (m *model) addMaps(maps []*results.CellMaps) error {
	side, most, total := m.sizeOf(maps)
	if most < total {
		m.Left = append(m.Left, fmt.Sprintf("Maps of the first %d of %d images are shown: the page would be "+
			"too large.", most, total))
	}
	index := map[string]*mapStage{}
	images, classes := map[string]int{}, map[string]int{}
	var missing []*results.CellMaps
	for _, p := range maps {
		if !hasMaps(p) {
			missing = append(missing, p)
			continue
		}
		c, err := m.mapCell(p, side, most)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Cell, err)
		}
		if c == nil {
			missing = append(missing, p)
			continue
		}
		if c.Images, err = m.imageList(p, most, images); err != nil {
			return fmt.Errorf("images of %s: %w", p.Cell, err)
		}
		if c.Classes, err = m.classList(p, most, classes); err != nil {
			return fmt.Errorf("classes of %s: %w", p.Cell, err)
		}
		stage := publish.StageOf(p.Cell)
		s := index[stage]
		if s == nil {
			s = &mapStage{Stage: stage, Axes: []string{}}
			for _, at := range p.Coord {
				s.Axes = append(s.Axes, at.Axis)
			}
			index[stage], m.Maps = s, append(m.Maps, s)
		}
		if n := len(c.IDs); n == len(s.Axes)+1 && p.Coord[n-1].Axis == versionAxis {
			s.Axes = append(s.Axes, versionAxis)
		}
		s.Cells = append(s.Cells, *c)
	}
	for _, s := range m.Maps { // on versionAxis, all other maps are current
		for i := range s.Cells {
			if c := &s.Cells[i]; len(c.IDs) < len(s.Axes) {
				c.IDs = append(c.IDs, "now")
			}
		}
	}
	m.Left = append(m.Left, lost(missing)...)
	return m.addRemovals(maps, most, images)
}

// lost returns a sentence for each stage with cells without maps, with the number of these cells and how to
// get the maps.
func lost(cells []*results.CellMaps) (left []string) {
	stage := func(p *results.CellMaps) string { return publish.StageOf(p.Cell) }
	count := map[string]int{}
	wires := map[string]string{}
	for _, p := range cells {
		count[stage(p)]++
		wires[stage(p)] = cmp.Or(wires[stage(p)], p.Wire)
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		text := fmt.Sprintf("There are no maps of %s (cells: %d): ", name, count[name])
		if w := wires[name]; w != "" {
			text += fmt.Sprintf("the experiment doesn't keep them (store: none). One more stage keeps them "+
				"small: %s-thumbnails: {uses: report/thumbnails, in: {maps: %s}}", name, w)
		} else {
			text += fmt.Sprintf("the store lost them. runexp run --force %s makes them again, and "+
				"keeps them unless the stage has store: none.", name)
		}
		left = append(left, text)
	}
	return left
}

// sizeOf returns the side of the maps on the page, and of how many images, of the total, their maps fit
// into it.
func (m *model) sizeOf(maps []*results.CellMaps) (side, most, total int) {
	all := 0
	for _, p := range maps {
		if hasMaps(p) {
			all += len(p.Maps.IDs)
			total = max(total, len(p.Maps.IDs))
		}
	}
	room := min(max(all*perMap, fewMapBytes), mostMapBytes)
	for _, side = range mapSides {
		if all*side*side <= room {
			return side, total, total
		}
	}
	return side, max(total*room/(all*side*side), 1), total
}

// mapCell reads the maps of a cell. It returns nil if the store lost one of them.
func (m *model) mapCell(p *results.CellMaps, side, most int) (*mapCell, error) {
	ids := p.Maps.IDs[:min(len(p.Maps.IDs), most)]
	c := &mapCell{Cell: p.Cell, Items: m.list(ids), IDs: []string{}}
	for _, at := range p.Coord {
		c.IDs = append(c.IDs, at.ID)
	}
	planes := make([]thumbnail.Plane, len(ids))
	for i := range ids {
		plane, full, err := planeAt(p, i)
		if err != nil || full == unknown {
			return nil, err
		}
		planes[i], c.Full = plane, append(c.Full, full)
		c.Signed = c.Signed || plane.Negative
	}
	var bytes []byte
	for _, t := range planes {
		low, high := t.Ends(c.Signed) // of the map itself: means over areas have other extremes
		shown := t.Within(side)
		bytes = append(bytes, shown.Levels(low, high)...)
		c.Sizes = append(c.Sizes, [2]int{shown.W, shown.H})
		c.Ends = append(c.Ends, [2]number{number(low), number(high)})
		c.States = append(c.States, t.State)
	}
	if !slices.ContainsFunc(c.States, func(s string) bool { return s != "" }) {
		c.States = nil
	}
	if c.Sizes, c.Full = shared(c.Sizes), shared(c.Full); slices.Equal(c.Sizes, c.Full) {
		c.Full = nil
	}
	packed, err := pack(bytes)
	c.Blob, m.blobs = len(m.blobs), append(m.blobs, packed)
	return c, err
}

// shared returns one size if all are equal.
func shared(sizes [][2]int) [][2]int {
	if len(slices.Compact(slices.Clone(sizes))) == 1 {
		return sizes[:1]
	}
	return sizes
}

// imageList returns the position of a cell's images in Images, which it extends by new ones.
func (m *model) imageList(p *results.CellMaps, most int, known map[string]int) (int, error) {
	if p.Images == nil {
		return -1, nil
	}
	if i, ok := known[p.Images.At]; ok {
		return i, nil
	}
	ids := p.Images.IDs[:min(len(p.Images.IDs), most)]
	list := imageList{Items: m.list(ids)}
	for i := range ids {
		source := ""
		if b, err := p.Images.Load(i); err == nil {
			data, media, err := photo(b)
			if err != nil {
				return 0, err
			}
			source = "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data)
		}
		list.Sources = append(list.Sources, source)
	}
	known[p.Images.At] = len(m.Images)
	m.Images = append(m.Images, list)
	return len(m.Images) - 1, nil
}

// classList returns the position of the classes that a cell's maps explain in Classes, which it extends by
// new ones.
func (m *model) classList(p *results.CellMaps, most int, known map[string]int) (int, error) {
	if p.Targets == nil {
		return -1, nil
	}
	at := p.Targets.At
	if p.Prediction != nil {
		at += p.Prediction.Targets.At
	}
	if p.Truth != nil {
		at += p.Truth.At
	}
	if i, ok := known[at]; ok {
		return i, nil
	}
	ids := p.Targets.IDs[:min(len(p.Targets.IDs), most)]
	list := classList{Items: m.list(ids)}
	var err error
	if list.classNames, err = classNamesOf(p.Targets, p.Probability, len(ids), p.Labels); err != nil {
		return 0, err
	}
	if q := p.Prediction; q != nil && slices.Equal(q.Targets.IDs, p.Targets.IDs) {
		predicted, err := classNamesOf(q.Targets, q.Probability, len(ids), p.Labels)
		if err != nil {
			return 0, err
		}
		list.Predicted = &predicted
	}
	if q := p.Truth; q != nil && slices.Equal(q.IDs, p.Targets.IDs) {
		truth, err := classNamesOf(q, nil, len(ids), p.Labels)
		if err != nil {
			return 0, err
		}
		list.True = truth.Names
		if list.Predicted != nil {
			list.Wrong = wrongOf(list.Predicted, &truth)
		}
	}
	known[at] = len(m.Classes)
	m.Classes = append(m.Classes, list)
	return len(m.Classes) - 1, nil
}

// wrongOf returns the positions of items whose predicted class isn't their label, where both are known.
func wrongOf(predicted, truth *classNames) (wrong []int) {
	for i, c := range truth.index {
		if p := predicted.index[i]; c >= 0 && p >= 0 && c != p {
			wrong = append(wrong, i)
		}
	}
	return wrong
}

// classNamesOf returns the names and probabilities of the first n classes.
func classNamesOf(targets, probability *results.Payloads, n int, labels string) (c classNames, err error) {
	for i := range n {
		name, index := "", int64(-1)
		if b, err := targets.Load(i); err == nil {
			t, err := stages.DecodeTensor(b)
			if err != nil {
				return c, err
			}
			if v := t.Int64s(); len(v) > 0 && v[0] >= 0 {
				name, index = className(labels, v[0]), v[0]
				if len(v) > 1 && v[1] >= 0 {
					name += " − " + className(labels, v[1])
				}
			}
		}
		c.Names, c.index = append(c.Names, name), append(c.index, index)
		if probability == nil || !slices.Equal(probability.IDs, targets.IDs) {
			continue
		}
		if b, err := probability.Load(i); err == nil {
			x, err := stages.ScalarOf(b)
			if err != nil {
				return c, err
			}
			c.Probability = append(c.Probability, number(x))
		}
	}
	if len(c.Probability) < n {
		c.Probability = nil
	}
	return c, nil
}

// className returns the name of a class, or its number if it has no name.
func className(names string, i int64) string {
	if list := strings.Split(names, "\n"); i >= 0 && i < int64(len(list)) && list[i] != "" {
		return list[i]
	}
	return "class " + strconv.FormatInt(i, 10)
}

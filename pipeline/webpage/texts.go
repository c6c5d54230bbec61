package webpage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/spans"
)

// A textPart is the maps of texts, with their words.
type textPart struct {
	Stages []*textStage `json:"stages"`
	Words  []wordList   `json:"words"`
}

// A textStage has the maps of all cells of one stage.
type textStage struct {
	Stage string     `json:"stage"`
	Axes  []string   `json:"axes"`
	Cells []textCell `json:"cells"`
}

// A textCell has the maps of one cell: the values of an item's tokens.
type textCell struct {
	IDs     []string    `json:"ids"` // by axis of the stage
	Cell    string      `json:"cell"`
	Items   int         `json:"items"`
	Words   int         `json:"words"`
	Classes int         `json:"classes"` // −1 for none
	Values  [][]value   `json:"values"`
	Curves  []textCurve `json:"curves"`
}

// A textCurve has for each item the place of every token, −1 if it has none, and the model's responses, with
// the number of tokens changed at each of their points. An item without a curve has nothing.
type textCurve struct {
	Cell      string      `json:"cell"`
	Order     string      `json:"order"`
	Responses []string    `json:"responses"`
	Ranks     [][]int64   `json:"ranks"`
	Changed   [][]value   `json:"changed"`
	Values    [][][]value `json:"values"` // by item and response
}

// A wordList is the texts of one port, by item, each as its spans.
type wordList struct {
	Items int        `json:"items"`
	Texts [][]wordly `json:"texts"`
}

// A wordly is a span: its kind, its text with every character visible, and its tokens.
type wordly struct {
	Kind   spans.Kind `json:"k"`
	Text   string     `json:"t"`
	Tokens []int      `json:"n,omitempty"`
}

// A value is written with four digits, and an undefined one as null.
type value float64

func (v value) MarshalJSON() ([]byte, error) {
	if x := float64(v); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return strconv.AppendFloat(nil, x, 'g', 4, 64), nil
	}
	return []byte("null"), nil
}

// mostTokens is how many values of tokens a page has.
const mostTokens = 600_000

// addTexts adds the maps of texts.
func (m *model) addTexts(list []*results.CellMaps) error {
	part := &textPart{Stages: []*textStage{}, Words: []wordList{}}
	most, total := textsOf(list)
	if most < total {
		m.Left = append(m.Left, fmt.Sprintf("Maps of the first %d of %d texts are shown: the page would be "+
			"too large.", most, total))
	}
	index, words, classes := map[string]*textStage{}, map[string]int{}, map[string]int{}
	lost := map[string]int{}
	for _, p := range list {
		c, err := m.textCell(p, most)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Cell, err)
		}
		if c == nil {
			lost[publish.StageOf(p.Cell)]++
			continue
		}
		if c.Words, err = part.wordList(m, p, most, words); err != nil {
			return fmt.Errorf("words of %s: %w", p.Cell, err)
		}
		if c.Classes, err = m.classList(p, most, classes); err != nil {
			return fmt.Errorf("classes of %s: %w", p.Cell, err)
		}
		stage := publish.StageOf(p.Cell)
		s := index[stage]
		if s == nil {
			s = &textStage{Stage: stage, Axes: []string{}}
			for _, at := range p.Coord {
				if at.Axis != versionAxis {
					s.Axes = append(s.Axes, at.Axis)
				}
			}
			index[stage], part.Stages = s, append(part.Stages, s)
		}
		s.Cells = append(s.Cells, *c)
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		m.Left = append(m.Left,
			fmt.Sprintf("There are no maps of %s (cells: %d): the store hasn't got them. "+
				"Those of texts are small: leave out store: none.", name, lost[name]))
	}
	for _, s := range part.Stages {
		s.setVersions()
	}
	if len(part.Stages) > 0 {
		m.Texts = part
	}
	return nil
}

// setVersions gives the maps of a stage an axis of versions if some of them are of the version before.
func (s *textStage) setVersions() {
	older := func(c textCell) bool { return len(c.IDs) > len(s.Axes) }
	if !slices.ContainsFunc(s.Cells, older) {
		return
	}
	for i := range s.Cells {
		if c := &s.Cells[i]; !older(*c) {
			c.IDs = append(c.IDs, "now")
		}
	}
	s.Axes = append(s.Axes, versionAxis)
}

// textsOf returns of how many texts, of the total, the maps fit into the page.
func textsOf(list []*results.CellMaps) (most, total int) {
	sizes := []int{}
	for _, p := range list {
		if p.Maps == nil {
			continue
		}
		for i := range p.Maps.IDs {
			if i == len(sizes) {
				sizes = append(sizes, 0)
			}
			if b, err := p.Maps.Load(i); err == nil {
				sizes[i] += len(b) / 4 * (1 + 2*len(p.Curves))
			}
		}
	}
	sum := 0
	for i, size := range sizes {
		if sum += size; sum > mostTokens {
			return max(i, 1), len(sizes)
		}
	}
	return len(sizes), len(sizes)
}

// ordered are the orders of curves that follow the ranks of a map.
var ordered = []string{"deletion", "insertion", "morf", "lerf"}

// textCell reads the maps of a cell. It returns nil if the store lost one of them.
func (m *model) textCell(p *results.CellMaps, most int) (*textCell, error) {
	if p.Maps == nil {
		return nil, nil
	}
	ids := p.Maps.IDs[:min(len(p.Maps.IDs), most)]
	c := &textCell{Cell: p.Cell, Items: m.list(ids), IDs: []string{}, Curves: []textCurve{}}
	for _, at := range p.Coord {
		c.IDs = append(c.IDs, at.ID)
	}
	for i := range ids {
		b, err := p.Maps.Load(i)
		if err != nil {
			return nil, nil
		}
		values, err := tokenValues(b)
		if err != nil {
			return nil, fmt.Errorf("map of %q: %w", ids[i], err)
		}
		c.Values = append(c.Values, values)
	}
	for _, of := range p.Curves {
		if !slices.Contains(ordered, of.Order) {
			continue
		}
		curve, err := curveOf(of, p.Maps.IDs, len(ids))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.Cell, err)
		}
		if curve != nil {
			c.Curves = append(c.Curves, *curve)
		}
	}
	return c, nil
}

// tokenValues decodes a map [1,n] or [C,1,n], whose channels are summed.
func tokenValues(payload []byte) ([]value, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	k := len(t.Shape)
	if k == 0 || k > 3 || k > 1 && t.Shape[k-2] != 1 {
		return nil, fmt.Errorf("shape %v isn't of a text's map", t.Shape)
	}
	values := make([]value, t.Shape[k-1])
	for i, v := range t.Float64s() {
		values[i%len(values)] += value(v)
	}
	return values, nil
}

// curveOf reads the curves of the first n items. It returns nil for curves that don't say how many tokens
// changed, and for those of other items.
func curveOf(c results.Curve, ids []string, n int) (*textCurve, error) {
	changed := slices.Index(c.Responses, "changed")
	if changed < 0 || !slices.Equal(c.Ranks.IDs, ids) || !slices.Equal(c.Values.IDs, ids) {
		return nil, nil
	}
	out := &textCurve{Cell: c.Cell, Order: c.Order, Responses: slices.Delete(slices.Clone(c.Responses),
		changed,
		changed+1)}
	for i := range n {
		ranks, rows, err := curveAt(c, i)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", ids[i], err)
		}
		steps := []value{}
		if rows != nil {
			steps = rows[changed]
			rows = slices.Delete(rows, changed, changed+1)
		}
		out.Ranks, out.Changed, out.Values = append(out.Ranks, ranks), append(out.Changed, steps),
			append(out.Values, rows)
	}
	return out, nil
}

// curveAt reads the curve of an item, and the places of its tokens: nothing if the store lost them or the map
// has no order.
func curveAt(c results.Curve, i int) (ranks []int64, rows [][]value, err error) {
	ranks = []int64{}
	places, err1 := c.Ranks.Load(i)
	b, err2 := c.Values.Load(i)
	if err1 != nil || err2 != nil {
		return ranks, nil, nil
	}
	order, err := stages.DecodeTensor(places)
	if err != nil {
		return ranks, nil, err
	}
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return ranks, nil, err
	}
	if len(t.Shape) != 2 || t.Shape[0] != len(c.Responses) || order.DType != stages.U32 || order.Len() == 0 {
		return ranks, nil, nil
	}
	for _, place := range order.Uint32s() {
		at := int64(place)
		if place == math.MaxUint32 {
			at = -1
		}
		ranks = append(ranks, at)
	}
	for row := range slices.Chunk(t.Float64s(), max(t.Shape[1], 1)) {
		values := make([]value, len(row))
		for k, v := range row {
			values[k] = value(v)
		}
		rows = append(rows, values)
	}
	return ranks, rows, nil
}

// wordList returns the position of a cell's texts in Words, which it extends by new ones.
func (t *textPart) wordList(m *model, p *results.CellMaps, most int, known map[string]int) (int, error) {
	if i, ok := known[p.Words.At]; ok {
		return i, nil
	}
	ids := p.Words.IDs[:min(len(p.Words.IDs), most)]
	list := wordList{Items: m.list(ids), Texts: [][]wordly{}}
	for i := range ids {
		text := []wordly{}
		if b, err := p.Words.Load(i); err == nil {
			w, err := stages.DecodeWords(b)
			if err != nil {
				return 0, fmt.Errorf("%q: %w", ids[i], err)
			}
			for _, s := range spans.Of(w) {
				text = append(text, shownSpan(s))
			}
		}
		list.Texts = append(list.Texts, text)
	}
	known[p.Words.At] = len(t.Words)
	t.Words = append(t.Words, list)
	return len(t.Words) - 1, nil
}

// mostBeyond is how many characters behind the last token are shown.
const mostBeyond = 400

// shownSpan returns a span as the page shows it: line breaks between tokens stay.
func shownSpan(s spans.Span) wordly {
	if s.Kind == spans.Between || s.Kind == spans.Beyond {
		runes := []rune(s.Text)
		more := ""
		if len(runes) > mostBeyond {
			more = fmt.Sprintf("… (%d more characters)", len(runes)-mostBeyond)
			runes = runes[:mostBeyond]
		}
		return wordly{Kind: s.Kind, Text: spans.VisibleLines(string(runes)) + more}
	}
	return wordly{s.Kind, spans.Visible(s.Text), s.Tokens}
}

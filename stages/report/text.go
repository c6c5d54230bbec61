package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/spans"
)

// TextParams are the parameters of [Text].
type TextParams struct {
	Chosen
	Rows    string  `yaml:"rows" axis:"maps,optional" doc:"the axis whose ids stand one above the other; default: the only axis"`
	Order   string  `yaml:"order" doc:"of the maps of a text: as the experiment lists the ids, or from the best score to the worst" choices:"written|score"`
	Scale   string  `yaml:"scale" doc:"whether each map has its own colour scale, or those of an id of rows or of the figure share one" choices:"map|row|figure"`
	Caption string  `yaml:"caption" doc:"above a text: its class and probability, its id, both, or nothing" choices:"class|file|both|none"`
	Special string  `yaml:"special" doc:"tokens that the tokeniser added, such as [CLS]" choices:"hide|show"`
	Words   bool    `yaml:"words" doc:"the pieces of a word as one, with the sum of their values"`
	Values  bool    `yaml:"values" doc:"print the value below each token"`
	Lines   int     `yaml:"lines" doc:"lines of a text, at most" min:"1" max:"400"`
	Size    float64 `yaml:"size" doc:"size of the letters in points of 1/72 inch" min:"5" max:"24"`
	Width   int     `yaml:"width" doc:"width of the figure in points, at most" min:"200" max:"2000"`
	DPI     int     `yaml:"dpi" doc:"dots per inch of the PNG" min:"72" max:"300"`
	Budget  int     `yaml:"budget" doc:"size of the PNG in kB above which it has fewer dots per inch, and with 72 isn't published" min:"20" max:"10000"`
	Title   string  `yaml:"title" doc:"a title"`
}

// Text shows texts with each token on the colour of its value: red and blue around white at 0. A scale ends
// at the largest magnitude of a token that the tokeniser didn't add.
var Text = stages.New(stages.Def[TextParams]{
	Name: "report/text",
	Doc: `texts with their tokens coloured by relevance

A text stands once for each id of the axis rows, one above the other, so that methods are
compared word by word. Red is evidence for the class, blue against it, and white is 0. The
colours end at the largest magnitude, which is printed on the left.

  texts: {uses: report/text, in: {maps: maps, words: reviews.words}, over: [method]}

The text is shown as it was written: spaces, punctuation and letters that a tokeniser drops
stand in their place, without a colour. Tokens that have a character in common, such as
the bytes of an emoji, are one, with the sum of their values; so are the pieces of a word
with words: true. Special tokens are left out unless special: show, and never count for the
scale; the caption says how much of the relevance they have. What was cut off behind the
last token is grey. Tokens whose value isn't a number have a grey ground.

Above a text stand its class and the probability, as in report/sheet: wire targets and
probability of model/predict, and labels for the names of classes. Below the name of a
method stands its score, if scores is wired. Tokens of masks, such as the rationales of
people, are underlined. Which texts are shown is chosen as in report/sheet.

Lines of Hebrew, Arabic and their like run from right to left, and characters that can't
be seen, such as those that change the direction, are written as \u202e. SVG files show
every script in the reader's fonts. PDF and PNG have one font, for Latin, Greek, Cyrillic
and Hebrew: other letters are boxes there, which the caption counts, and a PDF's text can
still be copied. The port tex has the figure as boxes of colour for \input, in your
document's font.`,
	Version:  2,
	Relation: stages.Whole,
	Ordered:  true,
	Named:    true,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of all rows, a value a token"},
		{Name: "words", Type: stages.WordsType, Doc: "the texts they explain, with their tokens"},
		{Name: "labels", Type: stages.Labels, Doc: "labels, and the names of classes", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "the explained classes", Optional: true},
		{Name: "probability", Type: stages.Scores, Doc: "their probabilities", Optional: true},
		{Name: "scores", Type: stages.Scores, Doc: "scores of the maps, shown below the names",
			Optional: true},
		{Name: "by", Type: stages.Scores, Doc: "scores that select the best and worst", Optional: true},
		{Name: "masks", Type: stages.Masks, Doc: "tokens to underline", Optional: true},
	},
	Outputs: figurePorts(stages.Port{Name: "tex", Type: stages.Figure,
		Doc: "the same in LaTeX, in boxes of colour"}),
	Defaults: TextParams{Chosen: chosen(), Rows: "method", Order: "written", Scale: "map",
		Caption: "class", Special: "hide", Lines: 40, Size: 8.5, Width: 480, DPI: 144, Budget: 200},
	Check: func(p TextParams, wired func(string) bool) error { return p.check(p.Order, wired) },
	Run:   runText,
})

// A textBlock is a text with its maps.
type textBlock struct {
	choice choice
	ids    []string // on the axes that aren't rows
	notes  []string // above the text, the first is prominent
	spans  []spans.Span
	marked []bool  // by span
	tiles  []*tile // a value a span; in the order in which they are shown; nil for a missing map
	flow   flow
}

// A textPage is the content of the figure.
type textPage struct {
	TextParams
	rows   []string
	names  map[string]string // labels of the rows
	blocks []*textBlock
	words  string // description of the selected texts

	special   float64 // the largest share of a map's magnitude that its special tokens have
	undefined int     // values
	lacking   int     // characters without a glyph
	leftToCut int     // tokens that aren't shown since their text has too many lines
}

func runText(ctx context.Context, p TextParams, e *stages.Env) error {
	s, err := p.read(ctx, e)
	if err != nil {
		return err
	}
	s.setScales()
	for _, b := range s.blocks {
		s.setFlow(b)
	}
	page := s.draw()
	caption := s.caption(e)
	if err := setPage(e, page, preview{p.DPI, 0, p.Budget}, caption, s.shown()); err != nil {
		return err
	}
	if s.lacking > 0 {
		boxes := " " + english.Count(s.lacking, "character") + " of other scripts " + english.Are(s.lacking) +
			" shown as boxes here, and as letters in the SVG."
		for _, port := range []string{"png", "pdf"} {
			e.OutFacts[port]["caption"] += boxes
		}
	}
	setFile(e, "tex", "tex", []byte(s.latex(caption)), caption)
	return nil
}

// shown lists the contents of the figure.
func (s *textPage) shown() shown {
	out := shown{Columns: s.rows}
	for _, b := range s.blocks {
		out.add(b.choice.id, b.ids)
	}
	return out
}

// caption describes the selection of texts and the numbers.
func (s *textPage) caption(e *stages.Env) string {
	text := "Tokens of " + s.words + ": red is evidence for the class, blue against it."
	if s.Words {
		text = "Words of " + s.words + ": red is evidence for the class, blue against it."
	}
	switch s.Scale {
	case "map":
		text += " The number on the left is at the ends of the colours."
	case "row":
		text += " The number on the left is at the ends of the colours, which the maps of a name share."
	case "figure":
		text += " All maps share a scale."
	}
	if e.Wired("scores") {
		text += " Below a name stands the score of its map."
	}
	if e.Wired("masks") {
		text += " What the masks mark, such as rationales, is underlined."
	}
	if s.Order == "score" {
		text += " Maps stand from the best score to the worst."
	}
	if s.special > 0 && s.Special == "hide" {
		text += fmt.Sprintf(" Special tokens aren't shown; they have up to %s %% of the magnitude of a map.",
			short(100*s.special))
	}
	if s.undefined > 0 {
		text += " On grey: " + english.Count(s.undefined, "undefined value") + "."
	}
	if s.leftToCut > 0 {
		text += fmt.Sprintf(" The texts end after %s; %s not shown.", english.Count(s.Lines, "line"),
			english.Count(s.leftToCut, "token")+" "+english.Are(s.leftToCut))
	}
	if s.Title != "" {
		text = s.Title + ": " + strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// read reads the texts and their maps.
func (p TextParams) read(ctx context.Context, e *stages.Env) (*textPage, error) {
	maps := e.Ports["maps"]
	axes := axesOf(maps)
	row := ""
	if len(axes) > 0 {
		var err error
		if row, err = oneAxis("rows", p.Rows, axes); err != nil {
			return nil, err
		}
	}
	s := &textPage{TextParams: p, names: map[string]string{}}
	for _, ids := range places(e.Order, maps, []string{row}) {
		s.rows = append(s.rows, ids[0])
		s.names[ids[0]] = e.Label(row, ids[0])
	}
	spread := slices.Clone(maps)
	if p.Order == "score" {
		spread = append(spread, e.Ports["scores"]...)
	}
	others := without(axesOf(spread), row)
	choices, words, err := picker{"words", "text", p.Chosen}.choose(ctx, e)
	if err != nil {
		return nil, err
	}
	s.words = words
	for _, c := range choices {
		for _, ids := range rowsOf(e.Order, maps, spread, others) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			b := &textBlock{choice: c, ids: ids}
			found, err := s.fill(e, b, coordsOf(others, ids), row)
			if err != nil {
				return nil, err
			}
			if found {
				for i, id := range ids {
					b.notes = append(b.notes, e.Label(others[i], id))
				}
				notes, err := notesOf(e, p.Caption, c, coordsOf(others, ids))
				if err != nil {
					return nil, err
				}
				b.notes = append(b.notes, notes...)
				s.blocks = append(s.blocks, b)
			}
		}
	}
	if len(s.blocks) == 0 {
		return nil, fmt.Errorf("none of the maps is of %s", words)
	}
	return s, nil
}

// fill reads a text and its maps. found is false if there are none.
func (s *textPage) fill(e *stages.Env, b *textBlock, place []stages.Coord, row string) (bool, error) {
	found := false
	id := b.choice.id
	payloads, err := payloadAt(e.Ports["words"], id, place)
	if err != nil || payloads == nil {
		return false, err
	}
	w, err := stages.DecodeWords(payloads)
	if err != nil {
		return false, fmt.Errorf("text %q: %w", id, err)
	}
	if b.spans = spans.Of(w); s.Words {
		b.spans = spans.Joined(b.spans)
	}
	if b.marked, err = markedSpans(e, id, place, b.spans, len(w.Tokens)); err != nil {
		return false, err
	}
	b.tiles = make([]*tile, len(s.rows))
	for _, d := range e.Ports["maps"] {
		if !agree(place, d.Coord) {
			continue
		}
		payload, err := payload(d, id)
		if err != nil {
			return false, err
		}
		if payload == nil {
			continue
		}
		values, err := tokenValues(payload, len(w.Tokens))
		if err != nil {
			return false, fmt.Errorf("map of %q: %w", id, err)
		}
		t := &tile{column: idOn(d.Coord, row), values: s.sums(b.spans, values)}
		if t.scores, err = scoresAt(e, id, slices.Concat(place, d.Coord)); err != nil {
			return false, err
		}
		b.tiles[slices.Index(s.rows, t.column)] = t
		found = true
	}
	if s.Order == "score" {
		for _, t := range b.tiles {
			if t != nil && len(t.scores) > 0 && t.scores[0].direction == stages.None {
				return false,
					errors.New("port scores: some have no better end, so maps can't be sorted by them")
			}
		}
		slices.SortStableFunc(b.tiles, compareTiles)
	}
	return found, nil
}

// tokenValues decodes a map of a text of n tokens. Channels are summed.
func tokenValues(payload []byte, n int) ([]float64, error) {
	m, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	k := len(m.Shape)
	if k == 0 || k > 3 || k > 1 && m.Shape[k-2] != 1 {
		return nil, fmt.Errorf("shape %v is an image's map, which report/sheet shows", m.Shape)
	}
	if m.Shape[k-1] != n {
		return nil, fmt.Errorf("it has %s, and the text %s", english.Count(m.Shape[k-1], "value"),
			english.Count(n, "token"))
	}
	values := make([]float64, n)
	for i, v := range m.Float64s() {
		values[i%n] += v
	}
	return values, nil
}

// sums returns the values of spans, NaN where undefined, and counts these and the share of special tokens.
func (s *textPage) sums(list []spans.Span, values []float64) []float32 {
	out := make([]float32, len(list))
	special, all := 0.0, 0.0
	for i, span := range list {
		sum := 0.0
		for _, k := range span.Tokens {
			sum += values[k]
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			sum = math.NaN()
			s.undefined++
		} else if all += math.Abs(sum); span.Kind == spans.Special {
			special += math.Abs(sum)
		}
		out[i] = float32(sum)
	}
	if all > 0 {
		s.special = max(s.special, special/all)
	}
	return out
}

// markedSpans reports for each span whether the mask of an item marks one of its tokens.
func markedSpans(e *stages.Env, id string, place []stages.Coord, list []spans.Span, n int) ([]bool, error) {
	out := make([]bool, len(list))
	b, err := payloadAt(e.Ports["masks"], id, place)
	if err != nil || b == nil {
		return out, err
	}
	mask, err := tokenValues(b, n)
	if err != nil {
		return nil, fmt.Errorf("mask of %q: %w", id, err)
	}
	for i, s := range list {
		for _, k := range s.Tokens {
			out[i] = out[i] || mask[k] == 1
		}
	}
	return out, nil
}

// setScales gives each map its scale: its own, or that of its row or of the figure.
func (s *textPage) setScales() {
	scales := map[string]*scale{}
	for i, b := range s.blocks {
		for k, t := range b.tiles {
			if t == nil {
				continue
			}
			key := fmt.Sprintf("%d %d", i, k)
			switch s.Scale {
			case "row":
				key = "row " + t.column
			case "figure":
				key = ""
			}
			if scales[key] == nil {
				scales[key] = &scale{}
			}
			t.scale = scales[key]
			for j, v := range t.values {
				if x := float64(v); !math.IsNaN(x) && b.spans[j].Kind != spans.Special {
					t.scale.high = max(t.scale.high, math.Abs(x))
					t.scale.signed = t.scale.signed || x < 0
				}
			}
		}
	}
}

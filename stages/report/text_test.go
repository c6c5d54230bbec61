package report

import (
	"bytes"
	"encoding/xml"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/spans"
	"github.com/runexp/runexp/stages/stagetest"
)

// textOf returns a text with [CLS] and [SEP] around tokens that are found in it one after another: ##
// begins a piece within a word.
func textOf(text string, tokens ...string) stages.Words {
	w := stages.Words{Text: text, Tokens: []string{"[CLS]"}, Offsets: [][2]int{{}}, Special: []bool{true}}
	at := 0
	for _, token := range tokens {
		piece := strings.TrimPrefix(token, "##")
		i := strings.Index(strings.ToLower(text[at:]), strings.ToLower(piece))
		if i < 0 {
			panic("the text lacks " + token)
		}
		from := utf8.RuneCountInString(text[:at+i])
		w.Tokens = append(w.Tokens, token)
		w.Offsets = append(w.Offsets, [2]int{from, from + utf8.RuneCountInString(piece)})
		w.Special = append(w.Special, false)
		at += i + len(piece)
	}
	w.Tokens, w.Offsets = append(w.Tokens, "[SEP]"), append(w.Offsets, [2]int{})
	w.Special = append(w.Special, true)
	return w
}

// reviews are those of figure 9 of absLRP's paper, with the pieces of a tokeniser, and a Hebrew one.
func reviews() []stages.Words {
	return []stages.Words{
		textOf("I hate this movie and I never want to see it again! "+
			"However, I loved the leading actor so much!",
			strings.Fields("i hate this movie and i never want to see it again ! however , i loved the "+
				"leading actor so much !")...),
		textOf("30% good, 10% too predictable, 60% terrible. "+
			"I guess Davies won't be saving Dr. Feh after all.",
			strings.Fields("30 % good , 10 % too predictable , 60 % terrible . i guess da ##vies won ' t be "+
				"saving dr . fe ##h after all .")...),
		textOf("Pros: The actor performance was admiring.\nCons: The script was embarrassing",
			strings.Fields("pros : the actor performance was admir ##ing . cons : the script was embarrass "+
				"##ing")...),
	}
}

// relevance returns made-up values of tokens: some words have much, the others little.
func relevance(w stages.Words, seed int) []float64 {
	strong := map[string]float64{"hate": -1, "never": -0.4, "loved": 0.56, "good": 0.7, "terrible": -1,
		"t": -0.3, "admir": 0.8, "##ing": 0.2, "embarrass": -0.9, "predictable": -0.25, "much": 0.2}
	values := make([]float64, len(w.Tokens))
	for i, token := range w.Tokens {
		values[i] = strong[token] + 0.05*math.Sin(float64(7*i+seed))
	}
	return values
}

// textInputs returns the inputs of a figure of texts with the maps of several methods.
func textInputs(texts []stages.Words, methods ...string) map[string][]stages.Data {
	in := map[string][]stages.Data{}
	var words [][]byte
	for _, w := range texts {
		b, err := w.Encode()
		if err != nil {
			panic(err)
		}
		words = append(words, b)
	}
	in["words"] = []stages.Data{stagetest.Items(stages.Facts{"ext": "json"}, words...)}
	for k, method := range methods {
		var maps [][]byte
		for _, w := range texts {
			v := relevance(w, k)
			maps = append(maps, stages.NewTensor(v, 1, len(v)).Encode())
		}
		in["maps"] = append(in["maps"], stagetest.At(stagetest.Items(nil, maps...), "method", method))
	}
	return in
}

func textParams(change func(p *TextParams)) *TextParams {
	p := Text.NewParams().(*TextParams)
	change(p)
	return p
}

// seenIn returns the texts of an SVG file, with where they begin.
func seenIn(t testing.TB, svg []byte) (list []textElement) {
	t.Helper()
	var doc struct {
		Texts []textElement `xml:"text"`
	}
	if err := xml.Unmarshal(svg, &doc); err != nil {
		t.Fatalf("the SVG is no XML: %v", err)
	}
	return doc.Texts
}

type textElement struct {
	Text      string  `xml:",chardata"`
	X         float64 `xml:"x,attr"`
	Y         float64 `xml:"y,attr"`
	Direction string  `xml:"direction,attr"`
	Fill      string  `xml:"fill,attr"`
}

// TestTextFigure compares the SVG of two reviews and two methods with the one that was looked at.
func TestTextFigure(t *testing.T) {
	in := textInputs(reviews()[1:], "abslrp", "integrated gradients")
	var classes, probability, scores [][]byte
	for i := range 2 {
		classes = append(classes, stages.NewTensor([]int64{int64(i)}, 1).Encode())
		probability = append(probability, stages.Scalar(0.93-0.5*float64(i)))
		scores = append(scores, stages.Scalar(0.125*float64(i)))
	}
	in["targets"] = []stages.Data{stagetest.Items(nil, classes...)}
	in["labels"] = []stages.Data{stagetest.Items(stages.Facts{"labels": "negative\npositive"}, classes[0],
		classes[0])}
	in["probability"] = []stages.Data{stagetest.Items(nil, probability...)}
	in["scores"] = []stages.Data{stagetest.At(stagetest.Items(nil, scores...), "method", "abslrp")}
	r := stagetest.Run(t, Text, nil, in)
	lookAt(t, "text", r)
	keep(t, "text.tex", r.Payloads["tex"][0])
	for file, port := range map[string]string{"testdata/text.svg": "figure", "testdata/text.tex": "tex"} {
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, r.Payloads[port][0]) {
			t.Errorf("%s isn't what is drawn: look at it in $RUNEXP_LOOK, and copy it from there (%v)", file,
				err)
		}
	}
	again := stagetest.Run(t, Text, nil, in)
	for port := range r.Payloads {
		if !bytes.Equal(r.Payloads[port][0], again.Payloads[port][0]) {
			t.Errorf("drawn twice, the %s differs", port)
		}
	}
	if got := shownBy(t, r); !slices.Equal(got.Columns, []string{"abslrp", "integrated gradients"}) ||
		!slices.Equal(got.Items, []string{"item-0", "item-1"}) {
		t.Errorf("the figure says that it shows %+v", got)
	}
	want := "Tokens of the first 2 texts: red is evidence for the class, blue against it. " +
		"The number on the left is at the ends of the colours. Below a name stands the score of its map. " +
		"Special tokens aren't shown; they have up to 2.7 % of the magnitude of a map."
	if got := r.Facts["figure"]["caption"]; got != want {
		t.Errorf("the caption is %s", got)
	}
	for name, change := range map[string]func(p *TextParams){
		"values":  func(p *TextParams) { p.Values, p.Special = true, "show" },
		"words":   func(p *TextParams) { p.Words, p.Scale = true, "figure" },
		"narrow":  func(p *TextParams) { p.Width, p.Size, p.Caption = 200, 12, "both" },
		"by-best": func(p *TextParams) { p.Best, p.Worst, p.Order = 1, 1, "score" },
	} {
		if name == "by-best" {
			in["scores"][0].Facts = stages.Measure{Direction: stages.Higher}.Facts(nil)
		}
		m := lookAt(t, "text-"+name, stagetest.Run(t, Text, textParams(change), in))
		if b := m.Bounds(); name == "narrow" && b.Dx() > 2*leastWidth {
			t.Errorf("%s: the figure has %v", name, b.Max)
		}
	}
}

// TestTextTokens checks for any text that the SVG is valid, that every character of it can be seen once for
// each map, and that no other markup is in it.
func TestTextTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for k := range 60 {
		w := stagetest.HostileWords(r)
		in := textInputs([]stages.Words{w}, "a", "b")
		got, err := stagetest.Try(Text, textParams(func(p *TextParams) {
			p.Special, p.Lines, p.Values, p.Words, p.DPI = "show", 400, k%3 == 0, k%4 == 0, 72
		}), in)
		if err != nil {
			t.Fatalf("%q: %v", w.Text, err)
		}
		var all strings.Builder
		for _, e := range seenIn(t, got.Payloads["figure"][0]) {
			all.WriteString(e.Text)
		}
		count := map[rune]int{}
		for _, c := range all.String() {
			if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
				t.Fatalf("%q has %U in its SVG", w.Text, c)
			}
			count[c]++
		}
		for _, s := range spans.Of(w) {
			for _, c := range s.Text {
				if unicode.IsLetter(c) && count[c] < 2 {
					t.Fatalf("%q lacks %q of the span %q:\n%s", w.Text, c, s.Text, all.String())
				}
			}
		}
		for _, s := range spans.Of(w) { // of each letter there are two, one for each map
			for _, c := range s.Text {
				if count[c] -= 2; unicode.IsLetter(c) && c > 'z' && count[c] < 0 {
					t.Fatalf("%q has %q too seldom", w.Text, c)
				}
			}
		}
		if !bytes.HasPrefix(got.Payloads["pdf"][0], []byte("%PDF-")) {
			t.Fatal("no PDF")
		}
		balanced(t, string(got.Payloads["tex"][0]))
	}
}

// balanced checks that the braces of LaTeX are, and that it has no command but ours.
func balanced(t *testing.T, tex string) {
	t.Helper()
	depth, rest := 0, regexp.MustCompile(`(?m)(^|[^\\])%.*$`).ReplaceAllString(tex, "$1")
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		t.Errorf("braces aren't balanced:\n%s", tex)
	}
	allowed := strings.Fields("providecommand tokenbox setlength fboxsep colorbox strut sloppy parindent " +
		"textbf quad par textit medskip textcolor textbackslash textasciitilde textasciicircum textless " +
		"textgreater " +
		"textbar char textasciigrave ensuremath pm dots allowbreak underline mathrm")
	for _, m := range regexp.MustCompile(`\\([A-Za-z]+)`).FindAllStringSubmatch(rest, -1) {
		if !slices.Contains(allowed, m[1]) {
			t.Errorf("the LaTeX has %s", m[0])
		}
	}
}

// TestTextLaTeX compiles the LaTeX of a text of all its special characters.
func TestTextLaTeX(t *testing.T) {
	text := `a\b {c} $d_1^2$ 50%~#&<e>|"f" 'g'` + "`h` --[i]*j* \\end{document}\x00\u202e ?`!` ,,k"
	w := stages.Words{Text: text}
	for i := range []rune(text) {
		w.Tokens, w.Special = append(w.Tokens, "x"), append(w.Special, false)
		w.Offsets = append(w.Offsets, [2]int{i, i + 1})
	}
	for _, values := range []bool{false, true} {
		in := textInputs(append(reviews(), w), "abs_lrp", `i\g`)
		r := stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Values = values }), in)
		tex := r.Payloads["tex"][0]
		balanced(t, string(tex))
		keep(t, "text-special.tex", tex)
		stagetest.LaTeX(t, map[string][]byte{"text.tex": tex, "paper.tex": []byte(
			"\\documentclass{article}\\usepackage{xcolor}\\begin{document}\\input{text.tex}\\end{document}")},
			"paper.tex")
	}
}

// TestTextColours checks that colours are monotone in the value and symmetric in its sign, that special
// tokens don't count for the scale, and that a value which is no number has none.
func TestTextColours(t *testing.T) {
	w := textOf("a b c d e f g", strings.Fields("a b c d e f g")...)
	values := []float64{50, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, -80}
	in := textInputs([]stages.Words{w}, "m")
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(values, 1, 9).Encode())}
	colours := func(change func(p *TextParams)) (list []string, s *textPage) {
		e, err := stagetest.Env(&Text, in)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = textParams(change).read(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		s.setScales()
		b := s.blocks[0]
		for i, span := range b.spans {
			if c, _, ok := s.ground(b, b.tiles[0], i); span.Tokens != nil && ok {
				list = append(list, hex(c))
			} else if span.Tokens != nil {
				list = append(list, "none")
			}
		}
		return list, s
	}
	got, s := colours(func(*TextParams) {})
	m := chart.Highlight()
	want := []string{hex(m.At(1)), hex(m.At(-1)), hex(m.At(-0.5)), hex(m.At(-0.25)), "none", hex(m.At(0.25)),
		hex(m.At(0.5)), hex(m.At(1)), hex(m.At(-1))}
	if !slices.Equal(got, want) {
		t.Errorf("the colours are %v, want %v", got, want)
	}
	if ends := endsOfText(s.blocks[0].tiles[0].scale); ends != "±1" ||
		math.Abs(s.special-130./133.5) > 1e-12 {
		t.Errorf("the scale is %s, special tokens have %v", ends, s.special)
	}
	for v := -1.0; v < 1; v += 0.01 {
		c := &scale{high: 0.7}
		if stepOfText(c, v) > stepOfText(c, v+0.01) || stepOfText(c, v) != -stepOfText(c, -v) {
			t.Errorf("%v has the step %d", v, stepOfText(c, v))
		}
	}
	values[3], values[4] = math.NaN(), math.Inf(1)
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(values, 9).Encode())}
	if got, s = colours(func(*TextParams) {}); got[3] != hex(blank) || got[4] != hex(blank) ||
		s.undefined != 2 ||
		got[1] != hex(m.At(-1)) {
		t.Errorf("with undefined values the colours are %v, %d of them", got, s.undefined)
	}
	clear(values)
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(values, 9).Encode())}
	if got, s = colours(func(*TextParams) {}); slices.ContainsFunc(got,
		func(c string) bool { return c != "none" }) ||
		endsOfText(s.blocks[0].tiles[0].scale) != "0" {
		t.Errorf("zeros have the colours %v", got)
	}
}

// TestTextScales checks which maps share a scale, and that pieces of a word add up.
func TestTextScales(t *testing.T) {
	in := textInputs(reviews(), "a", "b")
	count := func(change func(p *TextParams)) (int, *textPage) {
		e, err := stagetest.Env(&Text, in)
		if err != nil {
			t.Fatal(err)
		}
		s, err := textParams(change).read(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		s.setScales()
		distinct := map[*scale]bool{}
		for _, b := range s.blocks {
			for _, tile := range b.tiles {
				distinct[tile.scale] = true
			}
		}
		return len(distinct), s
	}
	for sharing, want := range map[string]int{"map": 6, "row": 2, "figure": 1} {
		if got, _ := count(func(p *TextParams) { p.Scale = sharing }); got != want {
			t.Errorf("%s: %d scales, want %d", sharing, got, want)
		}
	}
	_, s := count(func(p *TextParams) { p.Words, p.Items = true, Selection{IDs: []string{"item-2"}} })
	values := relevance(reviews()[2], 0)
	for i, span := range s.blocks[0].spans {
		if span.Text == "admiring" {
			want := float32(values[span.Tokens[0]] + values[span.Tokens[1]])
			if got := s.blocks[0].tiles[0].values[i]; got != want || len(span.Tokens) != 2 {
				t.Errorf("admiring has %v, want %v", got, want)
			}
			return
		}
	}
	t.Error("the pieces of a word aren't one")
}

// TestTextDirections checks the order of words in lines of either direction, and how a reader sees them.
func TestTextDirections(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
		right            bool
	}{
		{"Hebrew", "הסרט היה (טוב) BERT Smith 2026 פעם.", ".|פעם|2026|BERT|Smith|)|טוב|(|היה|הסרט", true},
		{"Hebrew within English", "The word אבא טוב, 12 means 3 fathers.",
			"The|word|12|,|טוב|אבא|means|3|fathers|.", false},
		{"a number after Hebrew", "שלום 3 4", "4|3|שלום", true},
		{"punctuation first", "« שלום »", "»|שלום|«", true},
		{"per cent in Hebrew", "מחיר 50% הנחה", "הנחה|50|%|מחיר", true},
		{"per cent in Arabic", "خصم 50% هنا", "هنا|%|50|خصم", true},
		{"decimals in Hebrew", "רק 3.5 או 1,000 (ב)", ")|ב|(|1|,|000|או|3|.|5|רק", true},
		{"a range in Hebrew", "בין 3-5 ו", "ו|3|-|5|בין", true},
		{"English", "one (two) 3.", "one|(|two|)|3|.", false},
	} {
		// Tokens are words and single signs.
		w := stages.Words{Text: tc.text}
		last := -1
		for i, r := range []rune(tc.text) {
			kind := 0
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				kind = 1
			}
			switch {
			case r == ' ':
				last = -1
				continue
			case kind == 1 && last == 1:
				w.Offsets[len(w.Offsets)-1][1]++
				last = kind
				continue
			}
			w.Tokens, w.Special = append(w.Tokens, "x"), append(w.Special, false)
			w.Offsets, last = append(w.Offsets, [2]int{i, i + 1}), kind
		}
		in := textInputs([]stages.Words{w}, "m")
		in["maps"][0].Coord = nil
		svg := stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Caption = "none" }),
			in).Payloads["figure"][0]
		var line []textElement
		for _, e := range seenIn(t, svg)[1:] { // without the end of the colours
			if e.Direction == "rtl" {
				e.X -= 0.5 // its right end: of a neighbour that begins there it is the left one
			}
			if e.Fill != "#6e6e6e" {
				line = append(line, e)
			}
		}
		var got []string
		for _, e := range line {
			got = append(got, e.Text)
		}
		if strings.Join(got, "|") != tc.want {
			t.Errorf("%s: from the left %s, want %s", tc.name, strings.Join(got, "|"), tc.want)
		}
		if line[0].Y != line[len(line)-1].Y || tc.right != (line[0].X > 40) && len(line) > 20 {
			t.Errorf("%s: the line is %v", tc.name, line)
		}
	}
	// An Arabic word in pieces has the forms of the whole word: ل joins what follows, ا doesn't.
	if got := joiners("", "الفي", "لم"); got != "الفي\u200d" {
		t.Errorf("a first piece is %q", got)
	}
	if got := joiners("الفي", "لم", ""); got != "\u200dلم" {
		t.Errorf("a last piece is %q", got)
	}
	if got := joiners("وا", "لد", "x"); got != "لد" {
		t.Errorf("after a letter that doesn't join: %q", got)
	}
}

// TestTextLong checks that a figure of long texts is finite and says what it leaves out, and that a token
// wider than a line is broken.
func TestTextLong(t *testing.T) {
	long := stages.Words{Text: strings.Repeat("W", 10_000) + strings.Repeat(" word", 1_000_000),
		Tokens: []string{"W", "word"}, Offsets: [][2]int{{0, 10_000}, {10_001, 10_005}},
		Special: make([]bool, 2)}
	in := textInputs([]stages.Words{long}, "m")
	r := stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Lines = 5 }), in)
	m := lookAt(t, "text-long", r)
	if b := m.Bounds(); b.Dx() > 2*480 || b.Dy() > 400 {
		t.Errorf("the figure has %v", b.Max)
	}
	if c := r.Facts["figure"]["caption"]; !strings.HasSuffix(c,
		" The texts end after 5 lines; 1 token is not shown.") {
		t.Errorf("the caption is %s", c)
	}
	r = stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Lines = 400 }), in)
	if s := string(r.Payloads["figure"][0]); !strings.Contains(s, ">characters)<") ||
		strings.Count(s, "W") < 10_000 {
		t.Errorf("the whole token isn't shown, or not what follows")
	}
}

// TestTextScripts checks that letters that the embedded font lacks are counted.
func TestTextScripts(t *testing.T) {
	chinese := textOf("电影很好 good", "电", "影", "很", "好", "good")
	r := stagetest.Run(t, Text, nil, textInputs([]stages.Words{chinese}, "m"))
	const boxes = " 4 characters of other scripts are shown as boxes here, and as letters in the SVG."
	if c := r.Facts["pdf"]["caption"]; !strings.HasSuffix(c, boxes) {
		t.Errorf("the PDF's caption is %s", c)
	}
	if c := r.Facts["figure"]["caption"]; strings.Contains(c, "boxes") {
		t.Errorf("the SVG's caption is %s", c)
	}
	lookAt(t, "text-scripts", stagetest.Run(t, Text, nil, textInputs([]stages.Words{
		textOf("הסרט הזה היה נהדר (ממש!) והשחקן BERT Smith שיחק 2026 פעמים.", "הסרט", "הזה", "היה", "נהד",
			"##ר",
			"(", "ממש", "!", ")", "והשחקן", "BE", "##RT", "Smith", "שיחק", "2026", "פעמים", "."),
		textOf("هذا الفيلم رائع جدا، والممثل ممتاز.", "هذا", "الفي", "##لم", "رائع", "جدا", "،", "وال",
			"##مم", "##ثل",
			"ممتاز", "."),
		chinese,
		textOf("यह फिल्म बहुत अच्छी है 👍🏽 cafe\u0301 naïve", "यह", "फ", "##िल्म", "बहुत", "अच्छी", "है", "👍",
			"🏽", "cafe",
			"na", "##ïve"),
		textOf("</text><script>alert(1)</script> & \u202eevil\u202c zero\u200bwidth \x00\x07 tab\there", "</",
			"text", "><",
			"script", ">", "alert", "(", "1", ")", "</", "script", ">", "&", "\u202eevil", "zero", "width",
			"tab", "here"),
	}, "ig", "lrp")))
}

// TestTextMasks checks that the tokens of a mask, and no others, are underlined.
func TestTextMasks(t *testing.T) {
	in := textInputs(reviews()[:1], "m")
	before := stagetest.Run(t, Text, nil, in).Payloads["figure"][0]
	mask := make([]uint8, len(reviews()[0].Tokens))
	mask[0], mask[2], mask[15] = stages.Ignored, 1, 1
	in["masks"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(mask, 1, len(mask)).Encode())}
	after := stagetest.Run(t, Text, nil, in)
	lines := func(svg []byte) int {
		n := 0
		for _, m := range regexp.MustCompile(`<path fill="#262626" d="([^"]*)"`).FindAllSubmatch(svg, -1) {
			n += strings.Count(string(m[1]), "M")
		}
		return n
	}
	if n := lines(after.Payloads["figure"][0]) - lines(before); n != 2 {
		t.Errorf("%d tokens are underlined, want 2", n)
	}
	if n := strings.Count(string(after.Payloads["tex"][0]), "\\underline{"); n != 2 {
		t.Errorf("in LaTeX %d tokens are underlined, want 2", n)
	}
}

func TestTextRefuses(t *testing.T) {
	in := textInputs(reviews(), "m")
	words := in["words"]
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(make([]float64, 64), 8, 8).Encode())}
	refuses(t, Text, nil, in, `map of "item-0": shape [8 8] is an image's map, which report/sheet shows`)
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(make([]float64, 3), 1, 3).Encode())}
	refuses(t, Text, nil, in, `map of "item-0": it has 3 values, and the text 25 tokens`)
	in["maps"] = []stages.Data{stagetest.Items(nil)}
	refuses(t, Text, nil, in, "none of the maps is of the first 3 texts")
	in = textInputs(reviews(), "m")
	refuses(t, Text, textParams(func(p *TextParams) { p.Items = Selection{IDs: []string{"x"}} }), in,
		`no text has the id "x"`)
	refuses(t, Text, textParams(func(p *TextParams) { p.Rows = "model" }), in,
		`the axis "model" isn't collapsed`)
	in["words"] = []stages.Data{stagetest.Items(nil, []byte("{}"), []byte("{"), []byte("{}"))}
	refuses(t, Text, textParams(func(p *TextParams) { p.Items = Selection{IDs: []string{"item-1"}} }), in,
		`text "item-1": words that are damaged`)
	in["words"] = words
	in["masks"] = []stages.Data{stagetest.Items(nil, stages.NewTensor([]uint8{1}, 1, 1).Encode())}
	refuses(t, Text, nil, in, `mask of "item-0": it has 1 value, and the text 25 tokens`)
	nothing := func(string) bool { return false }
	if err := Text.Check(textParams(func(p *TextParams) { p.Best = 1 }), nothing); err == nil ||
		!strings.Contains(err.Error(), "best and worst need scores") {
		t.Errorf("got the error %v", err)
	}
	if err := textParams(func(p *TextParams) { p.PerClass, p.Best = 1, 1 }).Validate(); err == nil {
		t.Error("per_class with best is taken")
	}
}

package webpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/spans"
	"github.com/runexp/runexp/stages/stagetest"
)

// textMaps returns the maps of texts by three methods, with a curve each: the tokens with the largest values
// go first, and the response is what share of the sum stays.
func textMaps(t *testing.T, texts []stages.Words) (list []*results.CellMaps) {
	t.Helper()
	var ids []string
	var words, targets, probability [][]byte
	for i, w := range texts {
		b, err := w.Encode()
		if err != nil {
			t.Fatal(err)
		}
		ids, words = append(ids, fmt.Sprintf("review-%d", i)), append(words, b)
		targets = append(targets, stages.NewTensor([]int64{int64(i % 2)}, 1).Encode())
		probability = append(probability, stages.Scalar(0.9))
	}
	at := func(name string, p *results.Payloads) *results.Payloads {
		p.At = name
		return p
	}
	for k, method := range []string{"abslrp", "ig", "saliency"} {
		var maps, ranks, curves [][]byte
		for _, w := range texts {
			n := len(w.Tokens)
			values, places := make([]float32, n), make([]uint32, n)
			units := 0
			for i, token := range w.Tokens {
				values[i] = float32(math.Sin(float64(len(token)*(i+k+1)))) * float32(len(token)) / 8
				if places[i] = math.MaxUint32; !w.Special[i] {
					places[i], units = uint32(units), units+1
				}
			}
			rows := make([]float64, 4*11)
			for s := range 11 {
				rows[s], rows[11+s], rows[22+s] = 1-0.08*float64(s), 3-float64(s), 1
				rows[33+s] = math.RoundToEven(float64(units*s) / 10)
			}
			maps = append(maps, stages.NewTensor(values, 1, n).Encode())
			ranks = append(ranks, stages.NewTensor(places, 1, n).Encode())
			curves = append(curves, stages.NewTensor(rows, 4, 11).Encode())
		}
		list = append(list, &results.CellMaps{Cell: "maps[method=" + method + "]",
			Coord: []stages.Coord{{Axis: "method", ID: method}}, Maps: at(method, kept(maps, ids...)),
			Words: at("words", kept(words, ids...)), Targets: at("targets", kept(targets, ids...)),
			Probability: at("probability", kept(probability, ids...)), Labels: "negative\npositive",
			Curves: []results.Curve{{Cell: "deletion[method=" + method + "]", Order: "deletion",
				Responses: []string{"probability", "logit", "correct", "changed"},
				Ranks:     at("ranks", kept(ranks, ids...)), Values: at("curves", kept(curves, ids...))}}})
	}
	return list
}

// plainText returns a text whose words are its tokens.
func plainText(text string) stages.Words {
	w := stages.Words{Text: text, Tokens: []string{"[CLS]"}, Offsets: [][2]int{{}}, Special: []bool{true}}
	at := 0
	for _, word := range regexp.MustCompile(`[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]|\s+`).FindAllString(text,
		-1) {
		n := len([]rune(word))
		if strings.TrimSpace(word) != "" {
			w.Tokens, w.Special = append(w.Tokens, word), append(w.Special, false)
			w.Offsets = append(w.Offsets, [2]int{at, at + n})
		}
		at += n
	}
	return w
}

// textPage returns the page of texts, and its model.
func textPage(t *testing.T, maps []*results.CellMaps) (string, *model) {
	t.Helper()
	v, err := publish.ReadVersion(folder(t, map[string]string{
		"cells/s.jsonl": line("s[method=abslrp]", 1) + line("s[method=ig]", 1.5),
		"items/s.csv": "cell/item,review-0,review-2,review-99\ns[method=abslrp],1,1,1\n" +
			"s[method=ig],1,2,1.5\n",
		"experiment.yaml": "name: texts\ntitle: Reviews\n"}))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, Source{Version: v, Maps: maps}, nil); err != nil {
		t.Fatal(err)
	}
	m, err := newModel(Source{Version: v, Maps: maps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), m
}

// TestTexts checks that a page has the words, values and curves of texts, and no markup of theirs. It is
// written to $REVIEW_TEXTS.
func TestTexts(t *testing.T) {
	texts := []stages.Words{
		plainText("I hate this movie and I never want to see it again! " +
			"However, I loved the leading actor so much!"),
		plainText("הסרט הזה היה נהדר (ממש!) והשחקן BERT Smith שיחק 2026 פעמים."),
		plainText("هذا الفيلم رائع جدا، والممثل ممتاز.\nSecond line 👍🏽 电影 cafe\u0301"),
		plainText(hostile + " \u202eevil\u202c zero\u200bwidth \x00 tab\there"),
	}
	text, m := textPage(t, textMaps(t, texts))
	if path := os.Getenv("REVIEW_TEXTS"); path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(text, "<script"); n != 2 || strings.Contains(text, "<img") {
		t.Errorf("the page has %d scripts, not the model and ours", n)
	}
	if len(m.Maps) != 0 || m.Texts == nil || len(m.Texts.Stages) != 1 || len(m.Texts.Words) != 1 ||
		len(m.Left) != 0 {
		t.Fatalf("the model has %d stages of images and texts %+v, left out %q", len(m.Maps), m.Texts, m.Left)
	}
	s := m.Texts.Stages[0]
	if len(s.Cells) != 3 || s.Axes[0] != "method" || s.Cells[1].IDs[0] != "ig" {
		t.Fatalf("the stage is %+v", s)
	}
	for i, w := range texts {
		if n := len(s.Cells[0].Values[i]); n != len(w.Tokens) {
			t.Errorf("text %d has %d values of %d tokens", i, n, len(w.Tokens))
		}
		c := s.Cells[0].Curves[0]
		if len(c.Responses) != 3 || len(c.Values[i]) != 3 || c.Changed[i][10] != value(len(w.Tokens)-1) ||
			c.Ranks[i][0] != -1 || c.Ranks[i][1] != 0 {
			t.Errorf("text %d has the curve %+v", i, c)
		}
		all := ""
		for _, span := range m.Texts.Words[0].Texts[i] {
			if all += span.Text; span.Kind == spans.Between && span.Tokens != nil {
				t.Errorf("a span is %+v", span)
			}
		}
		if strings.ContainsAny(all, "\u202e\u202c\u200b\x00\t") {
			t.Errorf("text %d is shown as %q", i, all)
		}
	}
	if m.Classes[s.Cells[0].Classes].Names[1] != "positive" {
		t.Errorf("the classes are %+v", m.Classes)
	}
	b, err := json.Marshal([]value{0.123456, -2, value(math.NaN()), 1e-9})
	if string(b) != "[0.1235,-2,null,1e-09]" || err != nil {
		t.Errorf("values are %s, %v", b, err)
	}
}

// TestHostileTexts checks that any text makes a page.
func TestHostileTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var texts []stages.Words
	for range 200 {
		texts = append(texts, stagetest.HostileWords(r))
	}
	if text, _ := textPage(t, textMaps(t, texts)); strings.Count(text, "<script") != 2 {
		t.Error("a text became markup")
	}
}

// TestTextsDamaged checks that the page tells of maps that the store lost, and of curves that it can't show.
func TestTextsDamaged(t *testing.T) {
	texts := []stages.Words{plainText("a b")}
	maps := textMaps(t, texts)
	maps[0].Maps = gone("review-0")
	maps[1].Maps = nil
	maps[2].Curves[0].Values = gone("review-0")
	_, m := textPage(t, maps)
	if len(m.Texts.Stages[0].Cells) != 1 || len(m.Left) != 1 ||
		!strings.HasPrefix(m.Left[0], "There are no maps of maps (cells: 2)") {
		t.Errorf("left out: %q", m.Left)
	}
	if c := m.Texts.Stages[0].Cells[0].Curves[0]; len(c.Ranks[0]) != 0 || len(c.Changed[0]) != 0 {
		t.Errorf("a lost curve is %+v", c)
	}
	maps = textMaps(t, texts)
	maps[0].Curves[0].Order = "random"
	maps[1].Curves[0].Responses = []string{"probability"}
	maps[2].Curves[0].Ranks.IDs = []string{"another"}
	_, m = textPage(t, maps)
	for _, c := range m.Texts.Stages[0].Cells {
		if len(c.Curves) != 0 {
			t.Errorf("%s has the curves %+v", c.Cell, c.Curves)
		}
	}
}

// TestManyTexts checks that the page has as many texts as it has room for.
func TestManyTexts(t *testing.T) {
	long := plainText(strings.Repeat("word ", 500))
	var texts []stages.Words
	for range 300 {
		texts = append(texts, long)
	}
	text, m := textPage(t, textMaps(t, texts))
	if len(m.Left) != 1 || !strings.Contains(m.Left[0], " of 300 texts are shown") || len(text) > 12<<20 {
		t.Errorf("the page has %d bytes, and left out %q", len(text), m.Left)
	}
}

// TestPagesOfImages checks that a page without texts has nothing of their part.
func TestPagesOfImages(t *testing.T) {
	text, _ := pageOf(t, folder(t, map[string]string{"cells/s.jsonl": line("s", 1)}))
	if strings.Contains(text, "addTextsPart") || strings.Contains(text, "text-figure") ||
		strings.Contains(text, `"texts"`) {
		t.Error("a page without texts has their part")
	}
}

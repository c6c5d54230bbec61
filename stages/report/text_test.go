package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// textOf returns a text with [CLS] and [SEP] around tokens that are found in it one after another: ## begins a
// piece within a word.
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
		textOf("I hate this movie and I never want to see it again! However, I loved the leading actor so much!",
			strings.Fields("i hate this movie and i never want to see it again ! however , i loved the "+
				"leading actor so much !")...),
		textOf("30% good, 10% too predictable, 60% terrible. I guess Davies won't be saving Dr. Feh after all.",
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

func TestTextLook(t *testing.T) {
	in := textInputs(reviews(), "abslrp", "integrated gradients", "gradient×input")
	var targets, probability, scores [][]byte
	for i := range 3 {
		targets = append(targets, stages.NewTensor([]int64{int64(i % 2)}, 1).Encode())
		probability = append(probability, stages.Scalar(1/float64(i+1)))
		scores = append(scores, stages.Scalar(0.1*float64(i)))
	}
	in["targets"] = []stages.Data{stagetest.Items(nil, targets...)}
	in["labels"] = []stages.Data{stagetest.Items(stages.Facts{"labels": "negative\npositive"}, targets[0], targets[0], targets[0])}
	in["probability"] = []stages.Data{stagetest.Items(nil, probability...)}
	lookAt(t, "text", stagetest.Run(t, Text, nil, in))
	lookAt(t, "text-values", stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Values, p.Special = true, "show" }), in))
	lookAt(t, "text-words", stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Words = true }), in))
	one := textInputs(reviews(), "abslrp")
	one["maps"][0].Coord = nil
	r := stagetest.Run(t, Text, textParams(func(p *TextParams) { p.Caption = "none" }), one)
	lookAt(t, "text-one", r)
	fmt.Println(string(r.Payloads["tex"][0]), r.Facts["pdf"])
	scripts := []stages.Words{
		textOf("הסרט הזה היה נהדר (ממש!) והשחקן BERT Smith שיחק 2026 פעמים.", "הסרט", "הזה", "היה", "נהד", "##ר", "(", "ממש", "!", ")", "והשחקן", "BE", "##RT", "Smith", "שיחק", "2026", "פעמים", "."),
		textOf("هذا الفيلم رائع جدا، والممثل ممتاز.", "هذا", "الفي", "##لم", "رائع", "جدا", "،", "وال", "##مم", "##ثل", "ممتاز", "."),
		textOf("这部电影太糟糕了，我讨厌它。但是演员很好！", strings.Split("这部电影太糟糕了，我讨厌它。但是演员很好！", "")...),
		textOf("यह फिल्म बहुत अच्छी है 👍🏽 cafe\u0301 naïve", "यह", "फ", "##िल्म", "बहुत", "अच्छी", "है", "👍", "🏽", "cafe", "na", "##ïve"),
		textOf("</text><script>alert(1)</script> & \u202eevil\u202c zero\u200bwidth \x00\x07 tab\there", "</", "text", "><", "script", ">", "alert", "(", "1", ")", "</", "script", ">", "&", "\u202eevil", "zero", "width", "tab", "here"),
	}
	lookAt(t, "text-scripts", stagetest.Run(t, Text, nil, textInputs(scripts, "ig", "lrp")))
}

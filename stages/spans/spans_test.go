package spans

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// written lists spans, as "kind text tokens".
func written(list []Span) string {
	var out []string
	for _, s := range list {
		text := string("tbsxy"[s.Kind]) + "‹" + s.Text + "›"
		for _, k := range s.Tokens {
			text += string('0' + rune(k))
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		w    stages.Words
		want string
	}{
		{"pieces of a word, and a tail", stages.Words{Text: "It's unhappy! And more",
			Tokens:  []string{"[CLS]", "it", "'", "s", "un", "##happy", "!", "[SEP]"},
			Offsets: [][2]int{{}, {0, 2}, {2, 3}, {3, 4}, {5, 7}, {7, 12}, {12, 13}, {}},
			Special: []bool{true, false, false, false, false, false, false, true}},
			"x‹[CLS]›0 t‹It›1 t‹'›2 t‹s›3 b‹ › t‹un›4 t‹happy›5 t‹!›6 y‹ And more› x‹[SEP]›7"},
		{"the bytes of an emoji", stages.Words{Text: "a 👍 b", Tokens: []string{"a", "ð", "Ł", "b"},
			Offsets: [][2]int{{0, 1}, {2, 3}, {2, 3}, {4, 5}}, Special: make([]bool, 4)},
			"t‹a›0 b‹ › t‹👍›12 b‹ › t‹b›3"},
		{"a letter with its mark, which has a token or none", stages.Words{Text: "e\u0301e\u0301",
			Tokens: []string{"e", "\u0301", "e"}, Offsets: [][2]int{{0, 1}, {1, 2}, {2, 3}},
			Special: make([]bool, 3)},
			"t‹e\u0301›01 t‹e\u0301›2"},
		{"a token that isn't in the text", stages.Words{Text: "a", Tokens: []string{"▁", "a", "\n"},
			Offsets: [][2]int{{0, 0}, {0, 1}, {1, 1}}, Special: make([]bool, 3)},
			"s‹▁›0 t‹a›1 s‹\n›2"},
		{"no tokens", stages.Words{Text: "ab"}, "y‹ab›"},
		{"no text", stages.Words{}, ""},
		{"an end of spaces", stages.Words{Text: "a \n", Tokens: []string{"a"}, Offsets: [][2]int{{0, 1}},
			Special: []bool{false}}, "t‹a›0 b‹ \n›"},
	} {
		if got := written(Of(tc.w)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestOfLaws checks for any text that no character is lost and that each token is in one span.
func TestOfLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		w := stagetest.HostileWords(r)
		for _, list := range [][]Span{Of(w), Joined(Of(w))} {
			var text strings.Builder
			var tokens []int
			for _, s := range list {
				if tokens = append(tokens, s.Tokens...); s.Kind != Spelled && s.Kind != Special {
					text.WriteString(s.Text)
				}
				if s.Tokens == nil != (s.Kind == Between || s.Kind == Beyond) {
					t.Fatalf("%q has a span %+v", w.Text, s)
				}
			}
			if text.String() != w.Text {
				t.Fatalf("%q is shown as %q", w.Text, text.String())
			}
			slices.Sort(tokens)
			for i := range w.Tokens {
				if i >= len(tokens) || tokens[i] != i {
					t.Fatalf("%q has the tokens %v", w.Text, tokens)
				}
			}
			if len(tokens) != len(w.Tokens) {
				t.Fatalf("%q has the tokens %v", w.Text, tokens)
			}
		}
	}
}

func TestJoined(t *testing.T) {
	w := stages.Words{Text: "unhappy, 电影", Tokens: []string{"un", "##hap", "##py", ",", "电", "影"},
		Offsets: [][2]int{{0, 2}, {2, 5}, {5, 7}, {7, 8}, {9, 10}, {10, 11}}, Special: make([]bool, 6)}
	if got, want := written(Joined(Of(w))), "t‹unhappy›012 t‹,›3 b‹ › t‹电›4 t‹影›5"; got != want {
		t.Errorf("joined: %s, want %s", got, want)
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"good": "good", "a\nb\tc": `a\nb\tc`, "\u202eevil": `\u202eevil`, "a\u200bb": `a\u200bb`,
		"می\u200cخواهم": "می\u200cخواهم", "\u200c": `\u200c`, "👩\u200d👧": "👩\u200d👧", "❤\ufe0f": "❤\ufe0f",
		"\u0301": "\u25cc\u0301", "a\u00a0b\u3000": "a b ", "\x00": `\u0000`, "\ue000": `\ue000`,
		"\U000e0041": `\U000e0041`, "a\xff": "a\ufffd",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		text := stagetest.HostileWords(r).Text
		seen := Visible(text)
		if Visible(seen) != seen || !utf8.ValidString(seen) ||
			utf8.RuneCountInString(seen) < utf8.RuneCountInString(text) {
			t.Fatalf("%q is shown as %q", text, seen)
		}
		for _, c := range seen {
			if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
				t.Fatalf("%q has %U", seen, c)
			}
		}
	}
}

func TestClusters(t *testing.T) {
	got := strings.Join(Clusters("ae\u0301👩\u200d👧👍🏽שָׁb"), "|")
	if want := "a|e\u0301|👩\u200d👧|👍🏽|שָׁ|b"; got != want {
		t.Errorf("clusters %s, want %s", got, want)
	}
}

package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// tokensFile writes a file of tokens, and returns the parameters of dataset/tokens.
func tokensFile(t *testing.T, content string) *TokensParams {
	t.Helper()
	p := Tokens.NewParams().(*TokensParams)
	p.Path = filepath.Join(t.TempDir(), "tokens.jsonl")
	if err := os.WriteFile(p.Path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return p
}

// arabic is a text of 7 characters with its tokens, and padding.
var arabic = strings.ReplaceAll(`{"text": "مَرْحَبًا", "ids": [0, 9, 8, 2, 1, 1],
 "tokens": ["<s>", "مر", "حبا", "</s>", "<pad>", "<pad>"],
 "offsets": [[0, 0], [0, 4], [4, 9], [0, 0], [0, 0], [0, 0]], "special": [1, 0, false, true, 1, 1],
 "mask": [1, 1, 1, 1, 0, 0], "types": [0, 0, 1, 0, 0, 0], "label": "LABEL_1",
 "rationale": [[0, 1], [2, 3]]}`, "\n", "")

func TestTokens(t *testing.T) {
	p := tokensFile(t,
		"\ufeff"+`{"pad": 1, "mask": 50, "vocabulary": 100, "tokenizer": "x"}`+"\r\n"+arabic+"\r\n"+
			strings.NewReplacer(`"LABEL_1"`, `"LABEL_0"`, `, "mask": [1, 1, 1, 1, 0, 0]`,
				"").Replace(arabic)+"\r\n")
	r := stagetest.Run(t, Tokens, p, nil)
	if got := rows(t, r.Payloads["tokens"][0]); got != "[3 4] [0 9 8 2 0 0 1 0 1 0 0 1]" {
		t.Error(got)
	}
	if got := rows(t, r.Payloads["tokens"][1]); !strings.HasPrefix(got, "[3 6] [0 9 8 2 1 1 0 0 1") {
		t.Error(got)
	}
	if got := rows(t, r.Payloads["masks"][0]); got != "[1 4] [255 1 0 255]" {
		t.Error(got)
	}
	if got := rows(t, r.Payloads["labels"][0]) + rows(t, r.Payloads["labels"][1]); got != "[1] [1][1] [0]" {
		t.Error(got)
	}
	words, err := stages.DecodeWords(r.Payloads["words"][0])
	if err != nil || len(words.Tokens) != 4 || words.Offsets[2] != [2]int{4, 9} || words.Special[2] {
		t.Errorf("%+v, %v", words, err)
	}
	if len(r.Warnings) != 1 ||
		r.Warnings[0] != `item "000002": 2 of its 6 tokens are left out: its mask hides them` {
		t.Error(r.Warnings)
	}
	if f := r.Facts["tokens"]; f["pad"] != "1" || f["mask"] != "50" || f["vocabulary"] != "100" {
		t.Error(f)
	}
	if f := r.Facts["labels"]; f["labels"] != "LABEL_0\nLABEL_1" {
		t.Error(f)
	}
	without := stagetest.Run(t, Tokens, tokensFile(t, arabic), nil)
	if f := without.Facts["tokens"]; len(f) != 1 || f[stages.ItemsFact] != "texts" ||
		len(without.Payloads["tokens"]) != 1 {
		t.Errorf("%v of %d texts without a first line", f, len(without.Payloads["tokens"]))
	}
}

// TestNotesOfTokens checks that a file's first line is in the notes of all texts, where their facts
// have it.
func TestNotesOfTokens(t *testing.T) {
	const head = `{"pad": 1, "mask": 50, "vocabulary": 100, "tokenizer": "x"}`
	content := head + "\n" + arabic + "\n" + strings.Replace(arabic, "LABEL_1", "LABEL_0", 1) + "\n"
	_, notes := sourcesOf(t, Tokens, tokensFile(t, content))
	for _, c := range []struct {
		from, to string
		moves    bool
	}{
		{`"pad": 1`, `"pad": 2`, true}, {`"mask": 50`, `"mask": 51`, true}, {`"mask": 50, `, ``, true},
		{`"vocabulary": 100`, `"vocabulary": 101`, true}, {`"tokenizer": "x"`, `"tokenizer": "y"`, false},
	} {
		_, now := sourcesOf(t, Tokens, tokensFile(t, strings.Replace(content, c.from, c.to, 1)))
		for i := range notes {
			if (now[i] != notes[i]) != c.moves {
				t.Errorf("%s: text %d: %q, was %q", c.to, i, now[i], notes[i])
			}
		}
	}
}

func TestTokensErrors(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"no ids":     {`"ids": [0, 9, 8, 2, 1, 1], `, "", "tokens.jsonl:1: there are no ids"},
		"null":       {`[0, 9, 8, 2, 1, 1]`, "null", "there are no ids"},
		"empty":      {`[0, 9, 8, 2, 1, 1]`, "[]", "ids is empty"},
		"fewer":      {`"ids": [0, 9, 8, 2, 1, 1]`, `"ids": [0, 9, 8, 2, 1]`, "there are 5 ids and 6 "},
		"no types":   {`"types": [0, 0, 1, 0, 0, 0]`, `"types": []`, "6 ids and 0 types"},
		"negative":   {`[0, 9, 8,`, "[0, -9, 8,", "the token 1 has the id -9"},
		"fraction":   {`[0, 9, 8,`, "[0, 9.5, 8,", "ids isn't a list of whole numbers"},
		"an id null": {`[0, 9, 8,`, "[0, null, 8,", "ids isn't a list of whole numbers"},
		"huge":       {`[0, 9, 8,`, "[0, 4294967296, 8,", "not between 0 and 2147483647"},
		"outside": {"[4, 9]", "[4, 10]",
			"the token 2 has the characters from 4 to 10, and the text has 9"},
		"backwards":   {"[4, 9]", "[9, 4]", "from 9 to 4"},
		"three":       {"[4, 9]", "[4, 9, 9]", "the token 2 has 3 offsets"},
		"special":     {`"special": [1,`, `"special": [2,`, "special isn't a list of 0 and 1"},
		"all special": {`[1, 0, false, true, 1, 1]`, `[1, 1, 1, 1, 1, 1]`, "special tokens alone"},
		"all hidden":  {`[1, 1, 1, 1, 0, 0]`, `[0, 0, 0, 0, 0, 0]`, "special tokens alone"},
		"a token":     {`"<s>"`, "null", "tokens isn't a list of texts"},
		"types":       {`"types": [0,`, `"types": [-1,`, "the token 0 has the type -1"},
		"text":        {`"text": "مَرْحَبًا"`, `"text": " "`, "the text is empty"},
		"bytes":       {`"<s>"`, "\"\xff\"", "not UTF-8 text"},
		"vocabulary": {`{"text"`, `{"vocabulary": 9}` + "\n" + `{"text"`,
			"tokens.jsonl:2: the token 1 has the id 9, and by line 1 there are 9"},
		"pad": {`{"text"`, `{"vocabulary": 9, "pad": 9}` + "\n" + `{"text"`,
			"tokens.jsonl:1: pad is 9, not between 0 and 8"},
		"no vocabulary": {`{"text"`, `{"vocabulary": 0}` + "\n" + `{"text"`, "vocabulary is 0"},
		"a name":        {`{"text"`, `{"pad": "x"}` + "\n" + `{"text"`, `pad is "x", not a whole number`},
		"a second header": {`{"text"`, `{"pad": 1}` + "\n" + `{"pad": 1}` + "\n" + `{"text"`,
			`tokens.jsonl:2: no "text"`},
		"CSV":              {`{"text"`, "text,label\n" + `{"text"`, "dataset/text reads CSV"},
		"of another shape": {`[0, 9, 8, 2, 1, 1]`, `"0 9 8"`, "ids isn't a list of whole numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(arabic, c.from, c.to, 1)
			if text == arabic {
				t.Fatal("nothing is replaced")
			}
			if _, err := stagetest.Try(Tokens, tokensFile(t, text), nil); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestLongLine: a line of 10 MB is read.
func TestLongLine(t *testing.T) {
	text := strings.Repeat("good bad! ", 1<<20)
	p := textFile(t, "a.jsonl", `{"text": "`+text+`"}`)
	r := stagetest.Run(t, Text, p, nil)
	if x, err := stages.DecodeTensor(r.Payloads["tokens"][0]); err != nil || x.Shape[1] != 3<<20+2 {
		t.Errorf("%v, %v", x.Shape, err)
	}
}

package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// vocabulary has a piece a line: the id is its number, from 0.
const vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\n##s\n!\nשלום\nक\nमल\n##ी"

// textFile writes files of texts and the vocabulary to a folder, and returns the parameters of dataset/text.
func textFile(t *testing.T, name, content string) *TextParams {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{name: content, "vocab.txt": vocabulary} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := Text.NewParams().(*TextParams)
	p.Path = filepath.Join(dir, name)
	return p
}

// sourcesOf returns the ids and the notes of a stage's sources.
func sourcesOf(t *testing.T, s stages.Stage, p any) (ids, notes []string) {
	t.Helper()
	list, err := s.Sources(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		ids, notes = append(ids, s.ID), append(notes, s.Note)
	}
	return ids, notes
}

// rows formats a tensor of integers.
func rows(t *testing.T, payload []byte) string {
	t.Helper()
	x, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x.Shape, x.Int64s())
}

func TestTextOfCSV(t *testing.T) {
	p := textFile(t, "reviews.csv", "\ufeffid;text;label;rationale\r\n"+
		"a;\"Good\nfilms; \"\"bad\"\"!\";neg;\"[[5, 10]]\"\r\n"+
		"\r\n"+
		"b;שָׁלוֹם film [MASK];pos;[]\r\n"+
		"c;कमली;pos;\r\n")
	r := stagetest.Run(t, Text, p, nil)
	for i, want := range []string{
		"[3 10] [2 5 7 8 1 1 6 1 9 3 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0 1]",
		"[3 5] [2 10 7 4 3 0 0 0 0 0 1 0 0 0 1]",
		"[3 3] [2 1 3 0 0 0 1 0 1]", // कमली is no word of क, since मल isn't ##मल
	} {
		if got := rows(t, r.Payloads["tokens"][i]); got != want {
			t.Errorf("tokens of %d: %s, want %s", i, got, want)
		}
	}
	if len(r.Payloads["masks"]) != 2 {
		t.Fatalf("%d masks of 2 texts with rationales", len(r.Payloads["masks"]))
	}
	if got := rows(t, r.Payloads["masks"][0]); got != "[1 10] [255 0 1 1 0 0 0 0 0 255]" {
		t.Error(got)
	}
	if got := rows(t, r.Payloads["masks"][1]); got != "[1 5] [255 0 0 0 255]" {
		t.Error(got)
	}
	for i, want := range []string{"[1] [0]", "[1] [1]", "[1] [1]"} {
		if got := rows(t, r.Payloads["labels"][i]); got != want {
			t.Errorf("label of %d: %s, want %s", i, got, want)
		}
	}
	words, err := stages.DecodeWords(r.Payloads["words"][1])
	if err != nil {
		t.Fatal(err)
	}
	if words.Text != "שָׁלוֹם film [MASK]" || words.Tokens[1] != "שלום" || words.Offsets[1] != [2]int{0, 7} ||
		words.Offsets[3] != [2]int{13, 19} || words.Special[3] || !words.Special[4] {
		t.Errorf("%+v", words)
	}
	if f := r.Facts["labels"]; f["labels"] != "neg\npos" || f["classes"] != "2" {
		t.Errorf("%v", f)
	}
	if f := r.Facts["tokens"]; f["pad"] != "0" || f["mask"] != "4" || f["vocabulary"] != "14" {
		t.Errorf("%v", f)
	}
	if ids, _ := sourcesOf(t, Text, p); !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Error(ids)
	}
	told := Text.HooksOf(p).Remarks()
	if len(told) != 1 || !strings.HasPrefix(told[0],
		"tokens are by vocab.txt, which is next to reviews.csv: ") {
		t.Error(told)
	}
	p.Tokenizer = filepath.Join(filepath.Dir(p.Path), "vocab.txt")
	if told := Text.HooksOf(p).Remarks(); len(told) != 0 {
		t.Error(told)
	}
}

// TestUnknownWords: a text that is mostly of words that the vocabulary lacks is warned of.
func TestUnknownWords(t *testing.T) {
	p := textFile(t, "reviews.csv", "text\ngood films !\ngood novel\ngood old novel\n电影\n")
	r := stagetest.Run(t, Text, p, nil)
	want := []string{
		`item "000004": 2 of its 3 tokens stand for words that the tokeniser doesn't know`,
		`item "000005": 2 of its 2 tokens stand for words that the tokeniser doesn't know`,
	}
	if !slices.Equal(r.Warnings, want) {
		t.Errorf("got %q", r.Warnings)
	}
}

// TestTextOfJSON: ids are lines, labels numbers from 1, and long texts lose their ends.
func TestTextOfJSON(t *testing.T) {
	p := textFile(t, "reviews.jsonl", `{"sentence": "good films!", "stars": 5}`+"\n\n"+
		`{"sentence": "bad\u0000", "stars": "1", "other": [null]}`)
	p.Text, p.Label, p.First, p.Length = "sentence", "stars", 1, 4
	r := stagetest.Run(t, Text, p, nil)
	if got := rows(t, r.Payloads["tokens"][0]); got != "[3 4] [2 5 7 3 0 0 0 0 1 0 0 1]" {
		t.Error(got)
	}
	if got := rows(t, r.Payloads["labels"][0]) + rows(t, r.Payloads["labels"][1]); got != "[1] [4][1] [0]" {
		t.Error(got)
	}
	if len(r.Warnings) != 1 ||
		r.Warnings[0] != `item "000001": of its 6 tokens, length leaves out 2 at the end` {
		t.Error(r.Warnings)
	}
	if ids, _ := sourcesOf(t, Text, p); !slices.Equal(ids, []string{"000001", "000003"}) {
		t.Error(ids)
	}
	lacks := Text.HooksOf(p).Lacks
	if err := lacks("masks", nil); err == nil || !strings.Contains(err.Error(), "has no rationales") {
		t.Error(err)
	}
	if err := lacks("labels", nil); err != nil {
		t.Error(err)
	}
}

// TestNotesOfTexts: a note changes with what moves the item's payloads, and with nothing else.
func TestNotesOfTexts(t *testing.T) {
	const text = `{"text": "good", "label": "x"}` + "\n" + `{"text": "bad", "label": "y"}`
	p := textFile(t, "a.jsonl", text)
	_, notes := sourcesOf(t, Text, p)
	for name, c := range map[string]struct {
		from, to string
		changed  []bool
	}{
		"a text":           {"bad", "film", []bool{false, true}},
		"a label's number": {`"x"`, `"z"`, []bool{true, true}},
		"a label's name":   {`"x"`, `"w"`, []bool{true, true}}, // which the facts have
		"a rationale":      {`"good",`, `"good", "rationale": [[0, 1]],`, []bool{true, false}},
		"another field":    {`"good",`, `"good", "stars": 4, "id": "first",`, []bool{false, false}},
		"spaces":           {`"good",`, ` "good" , `, []bool{false, false}},
	} {
		_, now := sourcesOf(t, Text, textFile(t, "b.jsonl", strings.Replace(text, c.from, c.to, 1)))
		for i := range notes {
			if (now[i] != notes[i]) != c.changed[i] {
				t.Errorf("%s: %q, was %q", name, now[i], notes[i])
			}
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(p.Path), "vocab.txt"), []byte(vocabulary+"\nx"),
		0o666); err != nil {
		t.Fatal(err)
	}
	if _, now := sourcesOf(t, Text, p); now[0] == notes[0] {
		t.Error("another vocabulary gives the same note")
	}
}

// TestChangedTexts: a file that changes between the listing of its texts and the work is an error.
func TestChangedTexts(t *testing.T) {
	p := textFile(t, "a.csv", "text\ngood\nbad\n")
	list, err := Text.Sources(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Path, []byte("text\ngood\nfilm\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	e := &stages.Env{Stage: &Text, Slot: stagetest.NewSlot()}
	for i := range list {
		e.Calls = append(e.Calls, stages.Call{Item: stages.Item{ID: list[i].ID}, Source: &list[i]})
	}
	if err := Text.Run(t.Context(), p, e); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
}

func TestTextErrors(t *testing.T) {
	for name, c := range map[string]struct {
		file, content, want string
		set                 func(*TextParams)
	}{
		"empty file":  {"a.csv", "", "is empty", nil},
		"no texts":    {"a.csv", "text,label\n", "has no texts", nil},
		"no column":   {"a.csv", "txt,label\na,b\n", `a.csv:1: no column "text", only txt, label`, nil},
		"two columns": {"a.csv", "text,x,x\na,b,c\n", `a.csv:1: two columns are called "x"`, nil},
		"fields": {"a.csv", "text,label\na,b\nc\n", "a.csv:3: 1 fields, and the first line has 2",
			nil},
		"quote":       {"a.csv", "text\n\"a\nb\nc", "a.csv:2: to line 4, column 2: extraneous", nil},
		"bare quote":  {"a.csv", "text\na\"b\n", `a.csv:2: column 2: bare "`, nil},
		"empty text":  {"a.csv", "text,label\n\"\n\",b\n", "a.csv:2: the text is empty", nil},
		"empty label": {"a.csv", "text,label\na,\n", `a.csv:2: the column "label" is empty`, nil},
		"bytes":       {"a.csv", "text\ngood\nb\xffd\n", "a.csv:3: not UTF-8 text", nil},
		"UTF-16":      {"a.csv", "\xff\xfet\x00e\x00x\x00t\x00", "a.csv:1: ", nil},
		"zip":         {"a.csv", "PK\x03\x04" + strings.Repeat("\x00", 40), "a .zip archive", nil},
		"spans": {"a.csv", "text,rationale\ngood,0-3\n", "a.csv:2: the rationale isn't a list",
			nil},
		"span of one": {"a.csv", "text,rationale\ngood,[[0]]\n",
			"a.csv:2: the rationale has a span of 1", nil},
		"span outside": {"a.jsonl", `{"text": "é", "rationale": [[0, 2]]}`,
			"from 0 to 2, and the text has 1", nil},
		"span backwards": {"a.jsonl", `{"text": "abc", "rationale": [[2, 2]]}`, "from 2 to 2", nil},
		"span of null": {"a.jsonl", `{"text": "abc", "rationale": [[null, 2]]}`, "isn't a list of pairs",
			nil},
		"ids": {"a.jsonl", "{\"text\": \"a\", \"id\": 7}\n{\"text\": \"b\", \"id\": \"7\"}",
			`a.jsonl:2: a second record with the id "7", first on line 1`, nil},
		"id": {"a.jsonl", `{"text": "a", "id": "a\nb"}`, "control characters", nil},
		"not JSON": {"a.jsonl", "{\"text\": \"a\"}\n{\"text\"\n", "a.jsonl:2: not an object of JSON",
			nil},
		"a list": {"a.json", "[{\"text\": \"a\"}]",
			"a.json:1: a list of JSON: JSON lines have an object", nil},
		"null":        {"a.jsonl", "{\"text\": \"a\"}\nnull", "a.jsonl:2: null", nil},
		"no text":     {"a.jsonl", `{"label": 1}`, `a.jsonl:1: no "text"`, nil},
		"a number":    {"a.jsonl", `{"text": 5}`, "text: 5 isn't a text", nil},
		"half a pair": {"a.jsonl", `{"text": "\ud83d good"}`, "half of a surrogate pair", nil},
		"labels": {"a.jsonl",
			"{\"text\": \"a\", \"label\": 1}\n\n{\"text\": \"b\", \"label\": null}",
			"a.jsonl:3: no label, and line 1 has one", nil},
		"label true": {"a.jsonl", `{"text": "a", "label": true}`,
			"label: true isn't a number or a name", nil},
		"mixed labels": {"a.csv", "text,label\na,1\nb,pos\n", "labels are all numbers or all names", nil},
		"fraction": {"a.csv", "text,label\na,1.5\n", `a.csv:2: the label "1.5" isn't a whole number`,
			nil},
		"before the first": {"a.csv", "text,label\na,0\n", "label 0 isn't between 1",
			func(p *TextParams) { p.First = 1 }},
		"many": {"a.csv", "text\n\" \"\n\" \"\ngood\n", "2 of 3 texts in ", nil},
		"per class": {"a.csv", "text\ngood\n", "have no labels",
			func(p *TextParams) { p.PerClass = 1 }},
		"length": {"a.csv", "text\ngood\n", "length is 2, and a text has at least 3 tokens",
			func(p *TextParams) { p.Length = 2 }},
		"no tokens": {"a.csv", "text\n\u0001\n", `item "000002": the tokeniser finds no token`, nil},
		"no tokeniser": {"a.csv", "text\ngood\n", "there is no tokenizer.json or vocab.txt next to",
			func(p *TextParams) { os.Remove(filepath.Join(filepath.Dir(p.Path), "vocab.txt")) }},
		"no file": {"a.csv", "text\ngood\n", "no such file", func(p *TextParams) { p.Path += "x" }},
		"a folder": {"a.csv", "text\ngood\n", "a folder",
			func(p *TextParams) { p.Path = filepath.Dir(p.Path) }},
		"tokens": {"a.jsonl", "{\"pad\": 0}\n", "dataset/tokens reads it", nil},
		"no such label": {"a.csv", "text\ngood\n", `no column "stars"`,
			func(p *TextParams) { p.Label = "stars" }},
		"none has stars": {"a.jsonl", `{"text": "a"}`, `no record has "stars"`,
			func(p *TextParams) { p.Label = "stars" }},
	} {
		t.Run(name, func(t *testing.T) {
			p := textFile(t, c.file, c.content)
			if c.set != nil {
				c.set(p)
			}
			if _, err := stagetest.Try(Text, p, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestCorruptTexts: skip leaves out what can't be read, and tells how much.
func TestCorruptTexts(t *testing.T) {
	p := textFile(t, "a.jsonl",
		"{\"text\": \"good\"}\n{\n{\"text\": \"\"}\n{\"text\": \"\\u0001\"}\n{\"text\": \"bad\"}")
	p.Corrupt = "skip"
	r := stagetest.Run(t, Text, p, nil)
	if len(r.Payloads["tokens"]) != 2 || len(r.Warnings) != 1 {
		t.Errorf("%d texts, %q", len(r.Payloads["tokens"]), r.Warnings)
	}
	told := Text.HooksOf(p).Remarks()
	if !strings.HasPrefix(told[0],
		"left out, as they can't be read: 2 of 5 texts in a.jsonl, first a.jsonl:2: ") {
		t.Error(told)
	}
}

// TestChosenTexts: count takes the first, per_class some of each, and a sample doesn't depend on the order.
func TestChosenTexts(t *testing.T) {
	var a, b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&a, "{\"text\": \"good %d\", \"id\": \"t%d\", \"label\": %d}\n", i, i, i%2)
		fmt.Fprintf(&b, "{\"text\": \"good %d\", \"id\": \"t%d\", \"label\": %d}\n", 19-i, 19-i, i%2)
	}
	chosen := func(text string, set func(*TextParams)) []string {
		p := textFile(t, "a.jsonl", text)
		set(p)
		ids, _ := sourcesOf(t, Text, p)
		return ids
	}
	if got := chosen(a.String(), func(p *TextParams) { p.Count = 2 }); !slices.Equal(got, []string{"t0",
		"t1"}) {
		t.Error(got)
	}
	if got := chosen(a.String(), func(p *TextParams) { p.PerClass = 1 }); !slices.Equal(got, []string{"t0",
		"t1"}) {
		t.Error(got)
	}
	first := chosen(a.String(), func(p *TextParams) { p.Sample = 5 })
	second := chosen(b.String(), func(p *TextParams) { p.Sample = 5 })
	slices.Sort(first)
	slices.Sort(second)
	if len(first) != 5 || !slices.Equal(first, second) {
		t.Errorf("%v and %v", first, second)
	}
}

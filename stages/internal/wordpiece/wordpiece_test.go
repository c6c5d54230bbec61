package wordpiece

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/runexp/runexp/stages"
)

func load(t testing.TB, file string) *Tokenizer {
	t.Helper()
	k, err := Load(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// short writes tokens as testdata/golden.py does.
func short(tokens []Token) string {
	var parts []string
	end := 0
	for _, k := range tokens {
		parts = append(parts, fmt.Sprint(k.ID, k.From-end, k.To-k.From))
		end = k.To
	}
	return strings.Join(parts, " ")
}

// TestTokensEqualHuggingFace compares ids and offsets with the library's on 2,000 strings of all scripts.
func TestTokensEqualHuggingFace(t *testing.T) {
	uncased, cased := load(t, "uncased/vocab.txt"), load(t, "cased/tokenizer.json")
	f, err := os.Open("testdata/golden.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines, wrong := 0, 0
	for s := bufio.NewScanner(z); s.Scan(); lines++ {
		var want struct{ Text, Uncased, Cased string }
		if err := json.Unmarshal(s.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		for name, k := range map[string]struct {
			t    *Tokenizer
			want string
		}{"uncased": {uncased, want.Uncased}, "cased": {cased, want.Cased}} {
			tokens, cut := k.t.Encode(want.Text, 0)
			if got := short(tokens); got != k.want || cut != 0 {
				if wrong++; wrong < 20 {
					t.Errorf("%s %q:\n got %s\nwant %s", name, want.Text, got, k.want)
				}
			}
		}
	}
	if lines != 2000 {
		t.Errorf("%d lines", lines)
	}
}

// TestEveryCodePoint compares what tables, decompositions and classes say of each with the library's answers.
func TestEveryCodePoint(t *testing.T) {
	h := sha256.New()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		k := kinds()[r]
		var whole, lower strings.Builder
		for _, d := range pieceOf(string(r), 0).decomposed().runes {
			whole.WriteRune(d)
		}
		for _, l := range (&normaliser{lower: true}).apply(pieceOf(string(r), 0)).runes {
			lower.WriteRune(l)
		}
		fmt.Fprintf(h, "%X %d %s %s\n", r, k, &whole, &lower)
		if got := class(r); (got != 0) != (k&combine != 0 && k&composed == 0) && k&composed == 0 {
			t.Errorf("%U has the class %d, in the table %t", r, got, k&combine != 0)
		}
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != digestOfTables {
		t.Errorf("the digest of all is %s, the library's %s", got, digestOfTables)
	}
}

// TestTemplate: tokenizer.json with a template gives the tokens of the same vocabulary in text, and types.
func TestTemplate(t *testing.T) {
	uncased := load(t, "uncased/vocab.txt")
	vocab, err := json.Marshal(uncased.pieces)
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "tokenizer.json", `{"version": "1.0", "added_tokens": [
  {"id": 4, "content": "[MASK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
	"special": true}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
	"strip_accents": null,
  "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 7}}, {"Sequence": {"id": "A", "type_id": 5}},
   {"SpecialToken": {"id": "[SEP]", "type_id": 6}}],
  "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2, 2], "tokens": ["[CLS]", "[CLS]"]},
   "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
  "max_input_chars_per_word": 100, "vocab": `+string(vocab)+`}}`)
	k, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if k.Mask != 4 || k.Pad != 0 || k.Vocabulary != uncased.Vocabulary || k.Least() != 4 {
		t.Errorf("mask %d, pad %d, %d ids of %d, at least %d tokens", k.Mask, k.Pad, k.Vocabulary,
			uncased.Vocabulary, k.Least())
	}
	const text = "Ünaffable [MASK] film"
	got, _ := k.Encode(text, 0)
	want, _ := uncased.Encode(text, 0)
	if short(got[1:]) != short(want) {
		t.Errorf("%s, want %s", short(got[1:]), short(want))
	}
	types := []int{}
	for _, k := range got {
		types = append(types, k.Type)
	}
	if types[0] != 7 || types[1] != 7 || types[2] != 5 || types[len(types)-1] != 6 {
		t.Errorf("types %v", types)
	}
}

func TestLength(t *testing.T) {
	k := load(t, "uncased/vocab.txt")
	all, _ := k.Encode("one two three four five six", 0)
	for most := k.Least(); most <= len(all)+1; most++ {
		some, cut := k.Encode("one two three four five six", most)
		if len(some) != min(most, len(all)) || len(some)+cut != len(all) {
			t.Errorf("%d tokens and %d cut of %d with at most %d", len(some), cut, len(all), most)
		}
		last := len(some) - 1
		if some[last].Text != "[SEP]" || !some[0].Special || some[1] != all[1] ||
			some[last-1] != all[last-1] {
			t.Errorf("%+v", some)
		}
	}
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// whole is a tokeniser without one part, which a test adds.
const whole = `{"pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece", "unk_token": "u",
 "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"u": 0, "x": 1}}`

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"BPE": {`{"model": {"type": "BPE", "vocab": {}, "merges": []}}`,
			"by BPE; only BERT's WordPiece"},
		"Unigram": {`{"model": {"type": "Unigram", "vocab": [["a", 0]]}}`,
			"python -m runexp_xai tokens MODEL"},
		"no model":   {`{}`, "has no model"},
		"no JSON":    {`{"model": `, "isn't a tokenizer.json"},
		"empty":      {"\n", "it is empty"},
		"binary":     {"\x89HDF\r\n\x1a\n\xff", "HDF5"},
		"not UTF-8":  {"[PAD]\n\xff\n", "isn't UTF-8 text"},
		"vocabulary": {"a\nb\n", `lacks "[UNK]"`},
		"no [CLS]":   {"[UNK]\n[SEP]\n", `lacks "[CLS]"`},
		"words": {`{"model": {"type": "WordPiece"}, "pre_tokenizer": {"type": "Whitespace"}}`,
			`"Whitespace"`},
		"normaliser": {whole + `, "normalizer": {"type": "NFC"}}`, `the normalizer "NFC"`},
		"sequence": {whole + `, "post_processor": {"type": "Sequence"}}`,
			`the post_processor "Sequence"`},
		"word": {whole + `, "added_tokens": [{"content": "x", "single_word": true}]}`,
			"single word"},
		"nothing": {whole +
			`, "normalizer": {"type": "BertNormalizer", "clean_text": true},` +
			` "added_tokens": [{"content": "\u0000", "normalized": true}]}`, "id 2 is empty"},
		"no id": {whole +
			`, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}]}}`,
			`no ids of "x"`},
		"no text": {whole + `, "post_processor": {"type": "TemplateProcessing", "single": []}}`,
			"a text 0 times"},
		"negative": {strings.Replace(whole, `"x": 1`, `"x": -1`, 1) + "}", "the id -1"},
		"fraction": {strings.Replace(whole, `"x": 1`, `"x": 1.5`, 1) + "}", "1.5"},
		"huge":     {strings.Replace(whole, `"x": 1`, `"x": 99999999999`, 1) + "}", "99999999999"},
		"special": {whole +
			`, "post_processor": {"type": "BertProcessing", "cls": ["x", -3], "sep": ["x", 1]}}`,
			"the id -3"},
		"without limit": {strings.Replace(whole, `"max_input_chars_per_word": 100,`, "", 1) + "}",
			"max_input_chars"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, "tokenizer", c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := Load(write(t, "tokenizer.json", whole+"}")); err != nil {
		t.Error(err)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "a folder") {
		t.Error(err)
	}
}

// TestConfig: tokenizer_config.json completes a vocabulary, and may not contradict tokenizer.json.
func TestConfig(t *testing.T) {
	vocab := "[UNK]\n[SEP]\n<s>\nÉ\ne\n<m>\n字\n<x>"
	for _, c := range []struct{ config, text, want string }{
		{`{"cls_token": "<s>"}`, "É<m>", "2 0 0 4 0 1 0 0 1 0 0 1 0 0 1 1 -4 0"}, // <, m and > are unknown
		{`{"cls_token": {"content": "<s>"}, "do_lower_case": false, "mask_token": "<m>"}`, "É<m>",
			"2 0 0 3 0 1 5 0 3 1 -4 0"},
		{`{"cls_token": "<s>", "tokenize_chinese_chars": false}`, "字字", "2 0 0 0 0 2 1 -2 0"},
		{`{"cls_token": "<s>", "added_tokens_decoder": {"7": {"content": "<x>"}, "8": {"content": "zz"}}}`,
			"<x>zz", "2 0 0 7 0 3 8 0 2 1 -5 0"},
	} {
		file := write(t, "vocab.txt", vocab)
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "tokenizer_config.json"), []byte(c.config),
			0o666); err != nil {
			t.Fatal(err)
		}
		k, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		tokens, _ := k.Encode(c.text, 0)
		if got := short(tokens); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.config, c.text, got, c.want)
		}
	}
	for config, want := range map[string]string{
		`{"tokenizer_class": "BertJapaneseTokenizer"}`: "a vocabulary of BertJapaneseTokenizer",
		`{"do_basic_tokenize": false}`:                 "do_basic_tokenize: false",
		`{`:                                            "tokenizer_config.json: ",
	} {
		file := write(t, "vocab.txt", vocab)
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "tokenizer_config.json"), []byte(config),
			0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	file := write(t, "tokenizer.json", whole+`, "normalizer": {"type": "BertNormalizer", "lowercase": true}}`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "tokenizer_config.json"),
		[]byte(`{"do_lower_case": false}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "do_lower_case: false") {
		t.Error(err)
	}
}

// TestDigest checks that a tokeniser has the same digest wherever its files are, and another one if
// tokenizer_config.json names another token that hides.
func TestDigest(t *testing.T) {
	for name, text := range map[string]string{"vocab.txt": "[UNK]\n[SEP]\n[CLS]\ne\n<m>\n[MASK]",
		"tokenizer.json": whole + "}"} {
		digest := func(config string) stages.Digest {
			file := write(t, name, text)
			if err := os.WriteFile(filepath.Join(filepath.Dir(file), "tokenizer_config.json"),
				[]byte(config), 0o666); err != nil {
				t.Fatal(err)
			}
			k, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			return k.Digest
		}
		one := digest(`{"do_lower_case": true, "mask_token": "<m>"}`)
		if again := digest(`{"mask_token": "<m>", "do_lower_case": true}`); again != one {
			t.Errorf("%s: the same files have another digest", name)
		}
		if other := digest(`{"do_lower_case": true}`); other == one {
			t.Errorf("%s: another token that hides has the same digest", name)
		}
	}
}

// TestTimeIsLinear: a text of 10 MB takes seconds, with words, marks, one long word, ideographs and
// beginnings of added tokens.
func TestTimeIsLinear(t *testing.T) {
	k := load(t, "uncased/vocab.txt")
	var text strings.Builder
	for _, unit := range []string{"wonderful film, ", "e\u0323\u0301\u0300", "aaaaaaaaaaaaaaaa", "漢字",
		"[MASK",
		"안녕"} {
		text.WriteString(strings.Repeat(unit, 10<<20/6/len(unit)))
	}
	start := time.Now()
	tokens, _ := k.Encode(text.String(), 0)
	took := time.Since(start)
	t.Logf("%d tokens in %v", len(tokens), took)
	if took > 30*time.Second {
		t.Errorf("%v", took)
	}
}

// FuzzEncode checks that tokens are in order and inside the text, and that what isn't unknown spells the
// normalised text.
func FuzzEncode(f *testing.F) {
	uncased, cased := load(f, "uncased/vocab.txt"), load(f, "cased/tokenizer.json")
	for _, s := range []string{"", "The [MASK] film's", "e\u0323\u0301", "İ\u0334字\xff", "<new> Ωδ",
		"안녕\u1d15e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range []*Tokenizer{uncased, cased} {
			tokens, _ := k.Encode(text, 0)
			end, spelt := 0, ""
			for _, x := range tokens {
				if x.Special {
					continue
				}
				if x.From > x.To || x.From < end && x.To < end || x.To > utf8.RuneCountInString(text) {
					t.Errorf("%q: %+v after %d", text, x, end)
				}
				end = x.To
				spelt += strings.TrimPrefix(x.Text, "##")
			}
			if strings.Contains(spelt, "[UNK]") || strings.ContainsAny(text, "[<#Ω") {
				continue
			}
			whole := ""
			for _, p := range k.added.split(text, k.normaliser) {
				whole += string(p.runes)
			}
			whole = strings.Join(strings.FieldsFunc(whole, func(r rune) bool { return is(r, space) }), "")
			if spelt != whole {
				t.Errorf("%q: %q spells %q", text, spelt, whole)
			}
		}
	})
}

// TestDecompositionsAreOfUnicode9: x/text may know later characters, whose table must not move with it.
func TestDecompositionsAreOfUnicode9(t *testing.T) {
	if got := string(pieceOf("\U00011938", 0).decomposed().runes); got != "\U00011938" {
		t.Errorf("%q, and x/text of Unicode %s", got, norm.Version)
	}
}

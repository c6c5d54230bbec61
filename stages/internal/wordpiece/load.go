package wordpiece

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/recent"
)

// maxBytes limits the files of a tokeniser; that of a vocabulary of 250,000 pieces has 20 MB.
const maxBytes = 1 << 28

// maxID limits ids.
const maxID = 1<<31 - 1

// TokensCommand writes the tokens of texts with a model's own tokeniser, for dataset/tokens.
const TokensCommand = "python -m runexp_xai tokens MODEL texts.csv > tokens.jsonl"

// other is the error of a tokeniser that this package doesn't have.
func other(format string, args ...any) error {
	return fmt.Errorf("%s; only BERT's WordPiece is known here: write the tokens with the model's own "+
		"tokeniser, %s, and read them by dataset/tokens", fmt.Sprintf(format, args...), TokensCommand)
}

// Names are the usual names of a tokeniser's file, the more telling first.
var Names = []string{"tokenizer.json", "vocab.txt"}

// Load reads a tokeniser from tokenizer.json, or from a vocabulary with a piece a line, whichever file is.
// What these don't say, tokenizer_config.json in the same folder does, if it exists.
func Load(file string) (*Tokenizer, error) {
	config := filepath.Join(filepath.Dir(file), "tokenizer_config.json")
	return loaded.Get("", []string{file, config}, func() (*Tokenizer, error) {
		return readFiles(file, config)
	})
}

// loaded are the last that this process has read.
var loaded recent.Cache[*Tokenizer]

// readFiles reads a tokeniser from its file, and from tokenizer_config.json if that exists.
func readFiles(file, config string) (*Tokenizer, error) {
	b, err := read(file)
	if err != nil {
		return nil, err
	}
	c, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	var t *Tokenizer
	var ids map[string]int
	digest := stages.Sum(b)
	if begin := bytes.TrimLeft(b, " \t\r\n"); len(begin) > 0 && begin[0] == '{' {
		t, ids, err = parse(b, c)
		if c.Pad != "" || c.Mask != "" { // all that the config adds to it
			digest = stages.Sum(fmt.Append(nil, digest, c))
		}
	} else {
		t, ids, err = fromVocabulary(b, c)
		digest = stages.Sum(fmt.Append(nil, digest, c))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t.Pad = idOf(ids, string(c.Pad), "[PAD]", "<pad>")
	t.Mask = idOf(ids, string(c.Mask), "[MASK]", "<mask>")
	t.Digest = digest
	return t, nil
}

func read(file string) ([]byte, error) {
	b, err := stages.ReadFile(file, maxBytes)
	if err == nil && len(bytes.TrimSpace(b)) == 0 {
		err = errors.New("it is empty")
	}
	if err == nil && !utf8.Valid(b) {
		err = errors.New("it isn't UTF-8 text")
		if is := stages.Mistaken(b); is != nil && b[0] != '[' && b[0] != '{' {
			err = is
		}
	}
	if pathError := new(fs.PathError); errors.As(err, &pathError) {
		err = pathError.Err
	}
	if err != nil {
		return nil, fmt.Errorf("tokeniser %q: %w", file, err)
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), nil
}

// idOf returns the id of the named token or, where none is named, of the first usual name; -1 if it has none.
func idOf(ids map[string]int, named string, usual ...string) int {
	if named != "" {
		usual = []string{named}
	}
	for _, name := range usual {
		if id, ok := ids[name]; ok {
			return id
		}
	}
	return -1
}

// An addition is a token in the list added_tokens of tokenizer.json.
type addition struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Left       bool   `json:"lstrip"`
	Right      bool   `json:"rstrip"`
	Normalised bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// A wordPiece is the model of tokenizer.json.
type wordPiece struct {
	Type      string         `json:"type"`
	Unknown   string         `json:"unk_token"`
	Prefix    *string        `json:"continuing_subword_prefix"`
	MostChars *int           `json:"max_input_chars_per_word"`
	Vocab     map[string]int `json:"vocab"`
}

// A bertNormaliser is the normaliser of tokenizer.json.
type bertNormaliser struct {
	Type       string `json:"type"`
	Clean      bool   `json:"clean_text"`
	Ideographs bool   `json:"handle_chinese_chars"`
	Strip      *bool  `json:"strip_accents"`
	Lower      bool   `json:"lowercase"`
}

func (b bertNormaliser) normaliser() *normaliser {
	n := &normaliser{clean: b.Clean, ideographs: b.Ideographs, strip: b.Lower, lower: b.Lower}
	if b.Strip != nil {
		n.strip = *b.Strip
	}
	return n
}

// typed is the type of a part of tokenizer.json, "" for none.
func typed(part json.RawMessage) string {
	var t struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(part, &t) // a part that isn't an object has no type
	return t.Type
}

// absent reports whether tokenizer.json lacks a part.
func absent(part json.RawMessage) bool { return len(part) == 0 || string(part) == "null" }

// parse reads tokenizer.json. ids are those of all tokens.
func parse(b []byte, c config) (t *Tokenizer, ids map[string]int, err error) {
	var parts struct {
		Added      []addition      `json:"added_tokens"`
		Normaliser json.RawMessage `json:"normalizer"`
		Words      json.RawMessage `json:"pre_tokenizer"`
		Template   json.RawMessage `json:"post_processor"`
		Model      json.RawMessage `json:"model"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return nil, nil, fmt.Errorf("it isn't a tokenizer.json: %w", err)
	}
	model, words := typed(parts.Model), typed(parts.Words)
	switch {
	case absent(parts.Model):
		return nil, nil, errors.New("it isn't a tokenizer.json: it has no model")
	case model != "" && model != "WordPiece":
		return nil, nil, other("a tokeniser by %s", model)
	case words != "BertPreTokenizer":
		return nil, nil, other("a tokeniser with the pre_tokenizer %q", words)
	}
	var m wordPiece
	if err := json.Unmarshal(parts.Model, &m); err != nil {
		return nil, nil, fmt.Errorf("its model: %w", err)
	}
	if m.Vocab == nil || m.Prefix == nil || m.MostChars == nil {
		return nil, nil,
			other("a model that lacks vocab, continuing_subword_prefix or max_input_chars_per_word")
	}
	if t, err = fromPieces(m.Vocab, m.Unknown, *m.Prefix, *m.MostChars); err != nil {
		return nil, nil, err
	}
	if !absent(parts.Normaliser) {
		var n bertNormaliser
		if kind := typed(parts.Normaliser); kind != "BertNormalizer" {
			return nil, nil, other("a tokeniser with the normalizer %q", kind)
		}
		if err := json.Unmarshal(parts.Normaliser, &n); err != nil {
			return nil, nil, fmt.Errorf("its normalizer: %w", err)
		}
		if err := c.agrees(n); err != nil {
			return nil, nil, err
		}
		t.normaliser = n.normaliser()
	}
	if err := t.readTemplate(parts.Template); err != nil {
		return nil, nil, err
	}
	ids, err = t.addTokens(m.Vocab, parts.Added)
	return t, ids, err
}

// fromPieces returns a tokeniser of a vocabulary, without normalisation and template.
func fromPieces(vocab map[string]int, unknown, prefix string, mostChars int) (*Tokenizer, error) {
	t := &Tokenizer{pieces: vocab, inner: map[string]int{}, prefix: prefix, mostChars: mostChars}
	for text, id := range vocab {
		if id < 0 || id > maxID {
			return nil, fmt.Errorf("%q has the id %d, which isn't between 0 and %d", text, id, maxID)
		}
		if inside, ok := strings.CutPrefix(text, prefix); ok {
			t.inner[inside] = id
		}
		t.longest = max(t.longest, len(text))
		t.Vocabulary = max(t.Vocabulary, id+1)
	}
	id, ok := vocab[unknown]
	if !ok {
		return nil, fmt.Errorf("the vocabulary lacks %q, the token of unknown words", unknown)
	}
	t.unknown = Token{ID: id, Text: unknown}
	return t, nil
}

// addTokens adds tokens to those of a vocabulary, and returns the ids of all. One that the vocabulary has
// keeps its id, whatever the file says; others are numbered after the vocabulary: so does the library.
func (t *Tokenizer) addTokens(vocab map[string]int, list []addition) (map[string]int, error) {
	ids, next := maps.Clone(vocab), len(vocab)
	byID := map[int]addition{}
	for _, a := range list {
		if a.Content == "" {
			continue
		}
		if a.SingleWord {
			return nil, other("the added token %q is found as a single word alone", a.Content)
		}
		id, known := ids[a.Content]
		if !known {
			id, next = next, next+1
			ids[a.Content] = id
		}
		byID[id] = a
		t.Vocabulary = max(t.Vocabulary, id+1)
	}
	t.added = addedTokens{raw: matcher{}, normalised: matcher{}}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		a, m := byID[id], t.added.raw
		if a.Normalised {
			a.Content, m = t.normaliser.textOf(a.Content), t.added.normalised
		}
		if err := m.add(&addedToken{id, a.Content, a.Left, a.Right}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// A templatePart is a special token, or the text.
type templatePart struct {
	Special *struct {
		ID   string `json:"id"`
		Type int    `json:"type_id"`
	} `json:"SpecialToken"`
	Text *struct {
		ID   string `json:"id"`
		Type int    `json:"type_id"`
	} `json:"Sequence"`
}

// A template is a post-processor of tokenizer.json, of three kinds.
type template struct {
	Single []templatePart `json:"single"`
	Tokens map[string]struct {
		IDs    []int    `json:"ids"`
		Tokens []string `json:"tokens"`
	} `json:"special_tokens"`

	First  namedID `json:"cls"`
	Last   namedID `json:"sep"`
	Trim   bool    `json:"trim_offsets"`
	Spaced bool    `json:"add_prefix_space"`
}

// A namedID is a token and its id, a list of two in JSON.
type namedID struct {
	Name string
	ID   int
}

// UnmarshalJSON reads the list.
func (n *namedID) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&n.Name, &n.ID}) }

// readTemplate reads what tokenizer.json puts around a text.
func (t *Tokenizer) readTemplate(part json.RawMessage) error {
	if absent(part) {
		return nil
	}
	var m template
	kind := typed(part)
	if !slices.Contains([]string{"TemplateProcessing", "BertProcessing", "RobertaProcessing"}, kind) {
		return other("a tokeniser with the post_processor %q", kind)
	}
	if err := json.Unmarshal(part, &m); err != nil {
		return fmt.Errorf("its post_processor: %w", err)
	}
	if kind != "TemplateProcessing" {
		t.before, t.after = []Token{m.First.token()}, []Token{m.Last.token()}
		t.trim, t.spaced = m.Trim && kind == "RobertaProcessing", m.Spaced
		return t.checkSpecial()
	}
	texts := 0
	for _, p := range m.Single {
		switch {
		case p.Text != nil && p.Text.ID == "A":
			t.kind = p.Text.Type
			texts++
		case p.Special != nil:
			special := m.Tokens[p.Special.ID]
			if len(special.IDs) != len(special.Tokens) || len(special.IDs) == 0 {
				return fmt.Errorf("its post_processor has no ids of %q", p.Special.ID)
			}
			list := &t.before
			if texts > 0 {
				list = &t.after
			}
			for i, id := range special.IDs {
				*list = append(*list, Token{ID: id, Text: special.Tokens[i], Type: p.Special.Type,
					Special: true})
			}
		default:
			return other("a post_processor that doesn't make one text of special tokens and a text")
		}
	}
	if texts != 1 {
		return other("a post_processor with a text %d times", texts)
	}
	return t.checkSpecial()
}

func (n namedID) token() Token { return Token{ID: n.ID, Text: n.Name, Special: true} }

// checkSpecial checks the ids of special tokens, which need not be in the vocabulary.
func (t *Tokenizer) checkSpecial() error {
	for _, k := range slices.Concat(t.before, t.after) {
		if k.ID < 0 || k.ID > maxID {
			return fmt.Errorf("%q has the id %d, which isn't between 0 and %d", k.Text, k.ID, maxID)
		}
		t.Vocabulary = max(t.Vocabulary, k.ID+1)
	}
	return nil
}

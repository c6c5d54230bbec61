package wordpiece

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A config is what tokenizer_config.json says of a tokeniser.
type config struct {
	Class      string              `json:"tokenizer_class"`
	Lower      *bool               `json:"do_lower_case"`
	Strip      *bool               `json:"strip_accents"`
	Ideographs *bool               `json:"tokenize_chinese_chars"`
	Words      *bool               `json:"do_basic_tokenize"`
	Unknown    name                `json:"unk_token"`
	First      name                `json:"cls_token"`
	Last       name                `json:"sep_token"`
	Pad        name                `json:"pad_token"`
	Mask       name                `json:"mask_token"`
	Added      map[string]addition `json:"added_tokens_decoder"`
}

// A name is a token's content, alone or in an object with its properties; "" for null.
type name string

// UnmarshalJSON reads either.
func (n *name) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var a addition
		err := json.Unmarshal(b, &a)
		*n = name(a.Content)
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

// or returns the name, or else the usual one.
func (n name) or(usual string) string {
	if n == "" {
		return usual
	}
	return string(n)
}

// String writes all that determines tokens, for a digest.
func (c config) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(b)
}

// readConfig reads tokenizer_config.json; without the file the config is empty.
func readConfig(file string) (c config, err error) {
	b, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, &c); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, err
}

// agrees returns an error if tokenizer.json normalises otherwise than the config says. Which of the two
// counts depends on the library's version.
func (c config) agrees(n bertNormaliser) error {
	strip := n.normaliser().strip
	for _, both := range []struct {
		name string
		says *bool
		has  bool
	}{{"do_lower_case", c.Lower, n.Lower}, {"strip_accents", c.Strip, strip},
		{"tokenize_chinese_chars", c.Ideographs, n.Ideographs}} {
		if both.says != nil && *both.says != both.has {
			return fmt.Errorf("its normalizer has it %t, and tokenizer_config.json says %s: %t: "+
				"make them agree",
				both.has, both.name, *both.says)
		}
	}
	return nil
}

// kin are the tokenisers that differ from BERT's by their names alone.
var kin = []string{"", "Bert", "DistilBert", "Electra", "MobileBert", "ConvBert"}

// fromVocabulary reads a vocabulary with a piece a line, and ids in their order. ids are those of all tokens.
func fromVocabulary(b []byte, c config) (t *Tokenizer, ids map[string]int, err error) {
	class := strings.TrimSuffix(strings.TrimSuffix(c.Class, "Fast"), "Tokenizer")
	if !slices.Contains(kin, class) && c.Class != "PreTrainedTokenizerFast" {
		return nil, nil, other("a vocabulary of %s, by tokenizer_config.json", c.Class)
	}
	if c.Words != nil && !*c.Words {
		return nil, nil, other("a tokeniser with do_basic_tokenize: false")
	}
	b = bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	vocab := map[string]int{}
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		vocab[line] = i
	}
	if t, err = fromPieces(vocab, c.Unknown.or("[UNK]"), "##", 100); err != nil {
		return nil, nil, fmt.Errorf("%w: is it BERT's, with a piece a line?", err)
	}
	n := bertNormaliser{Clean: true, Ideographs: true, Lower: true, Strip: c.Strip}
	if c.Lower != nil {
		n.Lower = *c.Lower
	}
	if c.Ideographs != nil {
		n.Ideographs = *c.Ideographs
	}
	t.normaliser = n.normaliser()
	for _, end := range []struct {
		name string
		list *[]Token
	}{{c.First.or("[CLS]"), &t.before}, {c.Last.or("[SEP]"), &t.after}} {
		id, ok := vocab[end.name]
		if !ok {
			return nil, nil, fmt.Errorf("the vocabulary lacks %q, a token of every text", end.name)
		}
		*end.list = []Token{{ID: id, Text: end.name, Special: true}}
	}
	var list []addition
	for _, special := range []string{t.unknown.Text, t.after[0].Text, c.Pad.or("[PAD]"), t.before[0].Text,
		c.Mask.or("[MASK]")} {
		if _, ok := vocab[special]; ok {
			list = append(list, addition{Content: special, Special: true})
		}
	}
	order := slices.SortedFunc(maps.Keys(c.Added), func(a, b string) int {
		x, _ := strconv.Atoi(a) // ids, whose order the library adds in
		y, _ := strconv.Atoi(b)
		return x - y
	})
	for _, id := range order {
		list = append(list, c.Added[id])
	}
	ids, err = t.addTokens(vocab, list)
	return t, ids, err
}

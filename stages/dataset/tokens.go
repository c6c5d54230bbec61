package dataset

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/textfile"
	"github.com/runexp/runexp/stages/internal/wordpiece"
)

// TokensParams are the parameters of [Tokens].
type TokensParams struct {
	Path string `yaml:"path" doc:"the file of the tokens, JSON lines" file:"read"`

	TextChoice
}

// Validate rejects a missing path, and parameters that exclude each other.
func (p *TokensParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: JSON lines that %s writes", wordpiece.TokensCommand)
	}
	return p.choice().check()
}

// Tokens reads texts whose tokens another program has made. An item's id is the text's own, or the number of
// its line.
//
// Facts: of pad, mask and vocabulary on tokens those that the first line has; classes and labels
// (newline-separated names) on labels if labels are names.
var Tokens = stages.New(stages.Def[TokensParams]{
	Name: "dataset/tokens",
	Doc: `texts with tokens by the model's own tokeniser

JSON lines, an object a line, as the package's Python module writes them with any
tokeniser of Hugging Face's transformers:

  python -m runexp_xai tokens MODEL texts.csv > tokens.jsonl

The first line may have what all texts share: pad and mask, the ids of the tokens that
fill up and that hide, and vocabulary, the number of ids. Every other line is a text:

  {"pad": 0, "mask": 103, "vocabulary": 30522}
  {"text": "Great!", "ids": [101, 2307, 999, 102], "tokens": ["[CLS]", "great", "!", "[SEP]"],
   "offsets": [[0, 0], [0, 5], [5, 6], [0, 0]], "special": [1, 0, 0, 1], "label": 1}

Here the second is broken in two to be read. special is 1 for a token that isn't of the
text; offsets are a token's first character and the one after its last, in Unicode code
points. A line may also have types (token type ids), mask (attention mask; tokens where
it is 0 are left out), label, id, and rationale, as in dataset/text.

  reviews: {uses: dataset/tokens, with: {path: tokens.jsonl}}`,
	Version:  1,
	Relation: stages.Expand,
	Outputs:  textOutputs,
	Defaults: TokensParams{TextChoice: TextChoice{Corrupt: "fail"}},
	Sources: func(p TokensParams, _ []string) (sources []stages.Source, err error) {
		err = p.opened(func(s *textSet) (err error) {
			sources, err = s.sources(s.shared(fmt.Sprint(s.headerFacts())))
			return err
		})
		return sources, err
	},
	Facts: func(p TokensParams, _ map[string]stages.Facts) (facts map[string]stages.Facts, err error) {
		err = p.opened(func(s *textSet) error {
			facts = s.facts(s.headerFacts())
			return nil
		})
		return facts, err
	},
	Run: func(ctx context.Context, p TokensParams, e *stages.Env) error {
		return p.opened(func(s *textSet) error {
			shared := s.shared(fmt.Sprint(s.headerFacts()))
			return s.read(ctx, e, shared, func(i int, r *textfile.Record) error {
				if n := r.Tokens.Padding; n > 0 {
					e.WarnItem(i, "%d of its %d tokens are left out: its mask hides them", n,
						n+len(r.Tokens.IDs))
				}
				return s.put(e, i, r, r.Tokens)
			})
		})
	},
	Hooks: func(p TokensParams) stages.Hooks {
		return stages.Hooks{Lacks: p.lacks, Most: oneEach, Remarks: p.remarks}
	},
})

// headerFacts returns the facts of tokens that the file's first line has.
func (s *textSet) headerFacts() stages.Facts {
	or := func(n *int) int {
		if n == nil {
			return -1
		}
		return *n
	}
	return factsOfTokens(or(s.Header.Pad), or(s.Header.Mask), or(s.Header.Vocabulary))
}

func (p TokensParams) lacks(port string, _ func(string) bool) (lacks error) {
	_ = p.opened(func(s *textSet) error { // an error is one of the sources, too
		lacks = s.lacks(port)
		return nil
	})
	return lacks
}

func (p TokensParams) remarks() (told []string) {
	_ = p.opened(func(s *textSet) error { // an error is one of the sources, too
		told = s.remarks()
		return nil
	})
	return told
}

// opened calls f with the index of the texts. Files may be in archives.
func (p TokensParams) opened(f func(*textSet) error) error {
	return unpacked([]*string{&p.Path, &p.Names}, func() error {
		s, err := p.open(p.Path, textfile.Usual, true)
		if err != nil {
			return err
		}
		return f(s)
	})
}

package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/textfile"
	"github.com/runexp/runexp/stages/internal/wordpiece"
)

// TextParams are the parameters of [Text].
type TextParams struct {
	Path      string `yaml:"path" doc:"the file of the texts, CSV or JSON lines" file:"read"`
	Tokenizer string `yaml:"tokenizer" doc:"the model's tokenizer.json or vocab.txt, of WordPiece; default: the one next to the texts" file:"read"`
	Length    int    `yaml:"length" doc:"the most tokens of a text, special ones included; a longer text loses its end; 0: all" min:"0" max:"1000000000"`
	Text      string `yaml:"text" doc:"the column, or the field of JSON lines, of the texts" key:"-"`
	Label     string `yaml:"label" doc:"that of the labels, if there are any" key:"-"`
	Rationale string `yaml:"rationale" doc:"that of the rationales, if there are any" key:"-"`
	ID        string `yaml:"id" doc:"that of the texts' names, if there are any" key:"-"`

	TextChoice
}

// Validate rejects a missing path, and parameters that exclude each other.
func (p *TextParams) Validate() error {
	for name, column := range map[string]string{"text": p.Text, "label": p.Label, "rationale": p.Rationale,
		"id": p.ID} {
		if column == "" {
			return stages.BadField(name, "%s is empty: it names a column", name)
		}
	}
	if p.Path == "" {
		return stages.BadField("path", "path is required: the file of the texts, CSV or JSON lines")
	}
	return p.choice().check()
}

// Text reads raw texts and tokenises them as Hugging Face's tokenizers does for BERT. An item's id is the
// text's own, or the number of its line.
//
// Facts: pad, mask and vocabulary on tokens; classes and labels (newline-separated names) on labels if labels
// are names.
var Text = stages.New(stages.Def[TextParams]{
	Name: "dataset/text",
	Doc: `texts, as tokens of BERT's WordPiece

CSV, whose first line names its columns, or JSON lines, an object a line, with text and
perhaps label, rationale and id. Labels are numbers or names as in dataset/folder, and
all texts have one or none has. CSV is that of RFC 4180, with commas, semicolons or tabs
between columns. A text without an id has the number of its line, as 000012. A file may
be larger than memory, and a line that changes affects its item alone.

The tokeniser is the model's: tokenizer.json, or vocab.txt with tokenizer_config.json
next to it if that exists. Ids and offsets are those of Hugging Face's tokenizers 0.23.
Models with another tokeniser than WordPiece, such as RoBERTa, DeBERTa and T5, have
their tokens written by it, for dataset/tokens:

  python -m runexp_xai tokens MODEL texts.csv > tokens.jsonl

A rationale is the evidence that people found for the label: spans of characters as
[[0, 5], [9, 12]], the first and the one after the last, counted in Unicode code points
from 0 (a line break in CSV is one). A token that overlaps a span is in the mask.

  reviews: {uses: dataset/text, with: {path: reviews.csv, tokenizer: bert/tokenizer.json, length: 512}}`,
	Version:  1,
	Relation: stages.Expand,
	Outputs:  textOutputs,
	Defaults: TextParams{Text: textfile.Usual.Text, Label: textfile.Usual.Label,
		Rationale: textfile.Usual.Rationale, ID: textfile.Usual.ID, TextChoice: TextChoice{Corrupt: "fail"}},
	Sources: func(p TextParams, _ []string) (sources []stages.Source, err error) {
		err = p.opened(func(s *textSet, t *wordpiece.Tokenizer) (err error) {
			sources, err = s.sources(s.shared(t.Digest.String()))
			return err
		})
		return sources, err
	},
	Facts: func(p TextParams, _ map[string]stages.Facts) (facts map[string]stages.Facts, err error) {
		err = p.opened(func(s *textSet, t *wordpiece.Tokenizer) error {
			facts = s.facts(factsOfTokens(t.Pad, t.Mask, t.Vocabulary))
			return nil
		})
		return facts, err
	},
	Run: runText,
	Hooks: func(p TextParams) stages.Hooks {
		return stages.Hooks{Lacks: p.lacks, Most: oneEach, Remarks: p.remarks}
	},
})

func (p TextParams) lacks(port string, _ func(string) bool) (lacks error) {
	_ = p.opened(func(s *textSet, _ *wordpiece.Tokenizer) error { // an error is one of the sources, too
		lacks = s.lacks(port)
		return nil
	})
	return lacks
}

func (p TextParams) remarks() (told []string) {
	_ = p.opened(func(s *textSet, _ *wordpiece.Tokenizer) error { // an error is one of the sources, too
		told = s.remarks()
		if p.Tokenizer == "" {
			if file, err := p.tokenizer(); err == nil {
				told = append(told, fmt.Sprintf("tokens are by %s, which is next to %s: "+
					"tokenizer names another, or the same without this warning", filepath.Base(file),
					filepath.Base(p.Path)))
			}
		}
		return nil
	})
	return told
}

// opened calls f with the index of the texts and the tokeniser. Files may be in archives.
func (p TextParams) opened(f func(*textSet, *wordpiece.Tokenizer) error) error {
	return unpacked([]*string{&p.Path, &p.Tokenizer, &p.Names}, func() error {
		s, err := p.open(p.Path, textfile.Fields{ID: p.ID, Label: p.Label, Text: p.Text,
			Rationale: p.Rationale}, false)
		if err != nil {
			return err
		}
		file, err := p.tokenizer()
		if err != nil {
			return err
		}
		t, err := wordpiece.Load(file)
		if err != nil {
			return err
		}
		if p.Length > 0 && p.Length < t.Least() {
			return stages.BadField("length", "length is %d, and a text has at least %s: %d of them special",
				p.Length,
				english.Count(t.Least(), "token"), t.Least()-1)
		}
		return f(s, t)
	})
}

// tokenizer returns the path of the tokeniser.
func (p TextParams) tokenizer() (string, error) {
	if p.Tokenizer != "" {
		return p.Tokenizer, nil
	}
	folder := filepath.Dir(p.Path)
	for _, name := range wordpiece.Names {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", stages.BadField("tokenizer", "there is no %s next to %s: tokenizer names the model's, or its "+
		"tokens are written by %s, for dataset/tokens", strings.Join(wordpiece.Names, " or "), p.Path,
		wordpiece.TokensCommand)
}

// factsOfTokens returns the facts of tokens; -1 stands for a token or a number that isn't known.
func factsOfTokens(pad, mask, vocabulary int) stages.Facts {
	facts := stages.Facts{}
	for name, n := range map[string]int{"pad": pad, "mask": mask, "vocabulary": vocabulary} {
		if n >= 0 {
			facts[name] = strconv.Itoa(n)
		}
	}
	return facts
}

func runText(ctx context.Context, p TextParams, e *stages.Env) error {
	return p.opened(func(s *textSet, t *wordpiece.Tokenizer) error {
		return s.read(ctx, e, s.shared(t.Digest.String()), func(i int, r *textfile.Record) error {
			tokens, cut := t.Encode(r.Text, p.Length)
			if len(tokens) < t.Least() {
				const none = "the tokeniser finds no token in its text"
				if p.Corrupt == "fail" {
					return fmt.Errorf("item %q: %s (corrupt: skip leaves such out)", e.Calls[i].ID, none)
				}
				e.WarnItem(i, "left out: "+none)
				return nil
			}
			if cut > 0 {
				e.WarnItem(i, "of its %d tokens, length leaves out %d at the end", len(tokens)+cut, cut)
			}
			if unknown, all := t.Unknown(tokens); 2*unknown > all {
				e.WarnItem(i, "%d of its %d tokens stand for words that the tokeniser doesn't know", unknown,
					all)
			}
			list := &textfile.Tokens{}
			for _, k := range tokens {
				list.IDs, list.Types = append(list.IDs, k.ID), append(list.Types, k.Type)
				list.Texts, list.Special = append(list.Texts, k.Text), append(list.Special,
					textfile.Flag(k.Special))
				list.Offsets = append(list.Offsets, [2]int{k.From, k.To})
			}
			return s.put(e, i, r, list)
		})
	})
}

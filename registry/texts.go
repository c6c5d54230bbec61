package registry

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/dataset"
)

// Texts describes a file of texts as the stage that reads it would see it.
type Texts struct {
	Path       string
	Tokenizer  string // as given; "" if the stage finds it, or needs none
	Stage      string // that reads it: dataset/text, or dataset/tokens for ids
	Count      int    // number of texts
	Labelled   bool
	Rationales bool
	Pad, Mask  bool // the tokeniser has these tokens
	Vocabulary int  // number of ids; 0 if unknown
	Classes    int  // named by the labels; 0 if these are numbers
	Characters int  // of a text, about
	Told       []string
}

// LookIntoTexts describes a file of texts, or the error that the stage would return.
func LookIntoTexts(path, tokenizer string) (t Texts, err error) {
	t = Texts{Path: path, Tokenizer: tokenizer, Stage: "dataset/text"}
	info, err := os.Stat(path)
	if err != nil {
		return t, err
	}
	s, params := dataset.Text, any(nil)
	ids, err := hasIDs(path)
	if err != nil {
		return t, err
	}
	if ids {
		t.Stage, t.Tokenizer, s = "dataset/tokens", "", dataset.Tokens
		p := s.NewParams().(*dataset.TokensParams)
		p.Path, params = path, p
	} else {
		p := s.NewParams().(*dataset.TextParams)
		p.Path, p.Tokenizer, params = path, tokenizer, p
	}
	sources, err := s.Sources(params, nil)
	if err != nil {
		return t, err
	}
	facts, err := s.FactsOf(params, nil)
	if err != nil {
		return t, err
	}
	t.Count = len(sources)
	t.Characters = int(info.Size()) / max(1, t.Count)
	if ids {
		t.Characters /= 6 // of a line, most are of numbers and names of tokens
	}
	hooks := s.HooksOf(params)
	none := func(string) bool { return false }
	t.Labelled = hooks.Lacks == nil || hooks.Lacks("labels", none) == nil
	t.Rationales = hooks.Lacks == nil || hooks.Lacks("masks", none) == nil
	t.Pad, t.Mask = facts["tokens"]["pad"] != "", facts["tokens"]["mask"] != ""
	t.Vocabulary, _ = strconv.Atoi(facts["tokens"]["vocabulary"])
	if labels := facts["labels"]["labels"]; labels != "" {
		t.Classes = strings.Count(labels, "\n") + 1
	}
	if hooks.Remarks != nil {
		t.Told = hooks.Remarks()
	}
	return t, nil
}

// hasIDs reports whether a file of JSON lines has the ids of tokens.
func hasIDs(path string) (bool, error) {
	if slices.Contains([]string{".csv", ".tsv", ".txt"}, strings.ToLower(filepath.Ext(path))) {
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return bytes.Contains(b, []byte(`"ids"`)), err
}

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

//go:embed starter_texts.yaml.tmpl
var textStarterText string

// A textStarter holds the values of the template for a model of texts.
type textStarter struct {
	starter
	Texts registry.Texts
	Hide  string // the substrate of the curves: mask or pad, "" if the tokeniser has neither
}

// writeTextStarter writes an experiment for a model of texts.
func writeTextStarter(ctx context.Context, u *ui, dir, model, texts, tokenizer string,
	look *registry.Look) error {
	if _, err := ort.Default(); err != nil {
		return err
	}
	s := textStarter{starter: starter{Name: starterName(ownName(model))}}
	s.File = filepath.Join(dir, s.Name+".yaml")
	if _, err := os.Lstat(s.File); err == nil {
		return exists(s.File)
	}
	model, modelAs, err := u.local(ctx, model, true)
	if err != nil {
		return err
	}
	texts, textsAs, err := u.local(ctx, texts, true)
	if err != nil {
		return err
	}
	if s.Model, err = inspected(ctx, model, look); err != nil {
		return err
	}
	if err := s.takesTexts(model); err != nil {
		return err
	}
	if err := s.lookInto(u, model, texts, tokenizer); err != nil {
		return err
	}
	given := modelAs
	s.Texts.Path = textsAs
	for _, path := range []*string{&modelAs, &s.Texts.Path, &s.Texts.Tokenizer} {
		if *path, err = seenFrom(dir, *path); err != nil {
			return environment(err)
		}
	}
	s.Model.File = given
	s.Stanza = indent(s.Model.StanzaAt(*look, modelAs), "  ")
	s.budget()
	text, err := s.text()
	if err != nil {
		return err
	}
	if err := s.create(dir, s.Name+".yaml", text); err != nil {
		return err
	}
	fmt.Fprintln(u.out, s.File)
	fmt.Fprintf(u.out, "%d methods on %d of %d texts: about %s on two cores\n", len(s.Methods), s.Count,
		s.Texts.Count, s.Time())
	u.power(s.File)
	u.hint("next: runexp run " + quote(s.File))
	return nil
}

// takesTexts returns an error for a model that can't be run, or takes images.
func (s *textStarter) takesTexts(model string) error {
	switch {
	case s.Model.Problem != "":
		return fmt.Errorf("%s: %s", model, s.Model.Problem)
	case s.Model.Texts == nil:
		return usage(fmt.Errorf("%s takes images, not texts", model), "name a folder of images by --images")
	}
	return nil
}

// lookInto reads the texts, and warns about what the model won't understand.
func (s *textStarter) lookInto(u *ui, model, texts, tokenizer string) (err error) {
	if tokenizer == "" {
		tokenizer = nextTo(texts, model)
	}
	if s.Texts, err = registry.LookIntoTexts(texts, tokenizer); err != nil {
		return usage(fmt.Errorf("--texts: %w", err), columnsHint(err))
	}
	if s.Texts.Count == 0 {
		return usage(fmt.Errorf("%s has no texts", texts), "")
	}
	for _, told := range s.Texts.Told {
		u.warn(told)
	}
	if !s.Texts.Labelled {
		u.warn(texts + " has no labels (label): the accuracy, which would show a wrong tokeniser, is " +
			"left out")
	}
	switch known := s.Model.Texts.Vocabulary; {
	case known == 0 || s.Texts.Vocabulary == 0:
	case s.Texts.Vocabulary > known:
		return usage(fmt.Errorf("the tokeniser has %d ids, and the model knows %d: it is another model's",
			s.Texts.Vocabulary, known), "name the model's own by --tokenizer")
	case s.Texts.Vocabulary < known:
		u.warn(fmt.Sprintf("the tokeniser has %d ids, and the model knows %d: is it the model's own?",
			s.Texts.Vocabulary, known))
	}
	if classes := s.Model.Feed.Classes; s.Texts.Classes > classes {
		u.warn(fmt.Sprintf("the labels name %d classes, and the model has %d", s.Texts.Classes, classes))
	}
	if s.Model.Gradient != "" {
		u.warn("methods that need gradients are left out: " + s.Model.Gradient)
	}
	switch {
	case s.Texts.Mask:
		s.Hide = "mask"
	case s.Texts.Pad:
		s.Hide = "pad"
	}
	return nil
}

// columnsHint returns how columns have to be called, "" for an error that isn't about their names.
func columnsHint(err error) string {
	var f *stages.FieldError
	if !errors.As(err, &f) || len(f.Names) == 0 {
		return ""
	}
	return "call the column with the texts text, and that with the classes label; in an experiment, text " +
		"and label of dataset/text name other columns"
}

// nextTo returns the tokeniser that is next to the texts or to the model, "" if there is none.
func nextTo(files ...string) string {
	for _, file := range files {
		for _, name := range []string{"tokenizer.json", "vocab.txt"} {
			tokenizer := filepath.Join(filepath.Dir(file), name)
			if _, err := os.Stat(tokenizer); err == nil {
				return tokenizer
			}
		}
	}
	return ""
}

// tokens estimates the length of a text.
func (s *textStarter) tokens() int {
	if s.Model.Texts.Fixed {
		return s.Model.Texts.Longest
	}
	return min(s.Model.Texts.Longest, max(8, s.Texts.Characters/4))
}

// perProgram estimates the seconds in which a program is made for a text's length.
const perProgram = 0.4

// budget chooses methods and the number of texts for a run of a few minutes.
func (s *textStarter) budget() {
	n := s.tokens()
	pass := float64(s.Model.MultiplyAdds) * perMultiplyAdd * float64(n) / float64(s.Model.Texts.Longest)
	pass = max(pass, 5e-5) / 2 // cores
	programs := 5.0            // lengths
	if !s.Model.Texts.Padded && !s.Model.Texts.Fixed {
		programs = float64(min(n, 40))
	}
	for _, level := range []struct{ costly, coarse, texts int }{
		{520, 1, enough}, {100, 2, enough}, {60, 2, leastImages},
	} {
		s.Coarse = level.coarse
		text := pass * float64(s.choose(s.textCandidates(n), level.costly)+len(s.Methods)*42)
		making := programs * perProgram * float64(len(s.Methods)) / 2
		s.Count = min(s.Texts.Count, mostImages, max(level.texts, int((firstRun-making)/text)))
		if s.seconds = text*float64(s.Count) + making; s.seconds <= firstRun {
			return
		}
	}
}

// textCandidates returns the methods that suit models of texts, for texts of n tokens.
func (s *textStarter) textCandidates(n int) []candidate {
	samples, drawn := 24/s.Coarse, 200/s.Coarse
	from := cmp.Or(s.Hide, "zero")
	units := fmt.Sprintf("substrate: %s, unit: pixel", cmp.Or(s.Hide, "removal"))
	out := []candidate{
		{"constant", "constant", "", anyKind, 0},
		{"random", "random", "reduce: sum", anyKind, 0},
		{"saliency", "saliency", "reduce: sum-abs", anyKind, 3},
		{"input-x-gradient", "input-x-gradient", "", anyKind, 3},
		{"integrated-gradients", "integrated-gradients", fmt.Sprintf("baseline: %s, steps: "+
			"%d", from, samples),
			anyKind, 3 * samples},
		{"smoothgrad", "smoothgrad", fmt.Sprintf("samples: %d, reduce: "+
			"sum-abs", samples), anyKind, 3 * samples},
		{"abslrp", "abslrp", "", anyKind, 8},
		{"lrp", "lrp-epsilon", "stabiliser: 0.01", convolutional, 4},
		{"attn-lrp", "lrp-epsilon", "gates: halved, stabiliser: 0.01", transformer, 4},
		{"raw-attention", "raw-attention", "", transformer, 1},
		{"attention-rollout", "attention-rollout", "", transformer, 1},
		{"occlusion", "occlusion", "window: 1, stride: 1, baseline: " + from, anyKind, n + 1},
		{"kernel-shap", "kernel-shap", units, anyKind, 2*max(200, 2*n) + 2},
		{"lime", "lime", fmt.Sprintf("%s, samples: %d", units, drawn), anyKind, drawn + 2},
	}
	if s.Hide == "" {
		return out
	}
	return append(out,
		candidate{"deeplift", "deeplift", "baseline: " + s.Hide, anyKind, 6},
		candidate{"partition-shap", "partition-shap",
			fmt.Sprintf("substrate: %s, evaluations: %d", s.Hide, drawn),
			anyKind, drawn + 12})
}

// text fills the template.
func (s *textStarter) text() ([]byte, error) {
	t := template.New("starter").Funcs(template.FuncMap{"quote": registry.Quote})
	var b bytes.Buffer
	err := template.Must(t.Parse(textStarterText)).Execute(&b, s)
	return b.Bytes(), err
}

// ownName returns the path of a model without the names that all exports by optimum and on Hugging Face's hub
// have in common: net for net/model.onnx and for hf://people/net@main/onnx/model.onnx.
func ownName(model string) string {
	if base := filepath.Base(model); base != "model.onnx" {
		return model
	}
	folder := filepath.Dir(model)
	if filepath.Base(folder) == "onnx" {
		folder = filepath.Dir(folder)
	}
	if name, _, _ := strings.Cut(filepath.Base(folder), "@"); strings.Trim(name, "./") != "" {
		return name + ".onnx"
	}
	return model
}

// starterName returns the name of an experiment on a model.
func starterName(model string) string {
	base := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	return cmp.Or(strings.TrimLeft(withoutOthers(base, "._-"), "._-"), "experiment")
}

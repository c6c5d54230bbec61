package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/runexp/runexp/registry"
)

func newVerb(f flags) *verb {
	var model, images, runtime string
	f["--model"], f["--images"], f["--onnxruntime"] = &model, &images, &runtime
	look := f.look()
	return &verb{
		name: "new", takes: arity{0, 2, "at most quickstart and a folder"},
		words: func() []string { return []string{quickstartName} },
		run: func(ctx context.Context, u *ui, args []string) error {
			switch sample := len(args) > 0 && args[0] == quickstartName && model == "" && images == ""; {
			case sample:
				return writeQuickstart(u, append(args[1:], ".")[0])
			case len(args) > 1:
				return misuse("new takes one argument, a folder, not %d; only quickstart stands before it", 2)
			case model == "" || images == "":
				return misuse("new needs --model and --images, or quickstart")
			}
			registry.UseRuntime(runtime)
			return writeStarter(ctx, u, append(args, ".")[0], model, images, look)
		},
	}
}

//go:embed starter.yaml.tmpl
var starterText string

// A starter is what the template is filled with.
type starter struct {
	File, Name, Stanza, Images string

	Model      registry.Inspection
	Folder     registry.Folder
	Accuracies []registry.Accuracy // measured, by preset

	Methods, Others []string // lines of the methods to compare, and of those to leave out, with the reason
	Count           int      // of images
	Steps, Coarse   int      // of the curves; by what settings of methods are divided
	seconds         float64  // that the run takes, about
}

func writeStarter(ctx context.Context, u *ui, dir, model, images string, look *registry.Look) error {
	if _, err := registry.OpenRuntime(); err != nil {
		return err
	}
	base := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	s := starter{Name: cmp.Or(strings.TrimLeft(withoutOthers(base, "._-"), "._-"), "experiment")}
	s.File = filepath.Join(dir, s.Name+".yaml")
	if _, err := os.Lstat(s.File); err == nil {
		return s.exists()
	}
	model, modelAs, err := u.local(ctx, model, true)
	if err != nil {
		return err
	}
	images, imagesAs, err := u.local(ctx, images, true)
	if err != nil {
		return err
	}
	folder, err := registry.LookInto(images)
	if err != nil {
		return environment(err)
	}
	x, err := inspected(ctx, model, look)
	if err != nil {
		return err
	}
	if x.Problem != "" {
		return fmt.Errorf("%s: %s", model, x.Problem)
	}
	if x.Gradient != "" {
		u.warn("methods that need gradients are left out: " + x.Gradient)
	}
	for _, text := range folder.Told {
		u.warn(text)
	}
	for _, text := range folder.Incomplete {
		u.warn("not used: " + text)
	}
	if folder.Labelled > 0 {
		if s.Accuracies, x.Preset, err = registry.Measure(ctx, model, *look, &x, folder); err != nil {
			if ctx.Err() != nil {
				return err
			}
			u.warn(fmt.Sprintf("presets can't be measured on these images: %v", err))
		}
	}
	given := modelAs
	for _, path := range []*string{&modelAs, &imagesAs, &folder.Masks, &folder.Boxes} {
		if *path, err = seenFrom(dir, *path); err != nil {
			return environment(err)
		}
	}
	x.File = given
	s.Model, s.Folder, s.Images = x, folder, imagesAs
	s.Stanza = indent(x.StanzaAt(*look, modelAs), "  ")
	s.budget()
	t := template.New("starter").Funcs(template.FuncMap{"right": s.right, "quote": registry.Quote})
	var b bytes.Buffer
	if err := template.Must(t.Parse(starterText)).Execute(&b, &s); err != nil {
		return err
	}
	if err := s.create(dir, b.Bytes()); err != nil {
		return err
	}
	s.report(u)
	return nil
}

// report tells what was written, and on what grounds.
func (s *starter) report(u *ui) {
	fmt.Fprintln(u.out, s.File)
	next := "next: runexp run " + quote(s.File)
	switch preset := s.Model.Preset; {
	case preset != "":
		others := slices.Clone(s.Accuracies)
		slices.SortStableFunc(others, func(a, b registry.Accuracy) int { return b.Correct - a.Correct })
		fmt.Fprintf(u.out, "preset %s: the model is right on %s", preset, s.right(preset))
		if s.Tied() != nil {
			fmt.Fprint(u.out, ", a guess among equals")
		}
		for _, a := range others {
			if a.Preset != preset && a.Correct > 0 {
				fmt.Fprintf(u.out, ", with %s on %d", a.Preset, a.Correct)
			}
		}
		fmt.Fprintln(u.out)
	case s.Accuracies != nil:
		fmt.Fprintln(u.out, "preset: a guess; with none the model is clearly better than guessing")
	default:
		fmt.Fprintln(u.out, "preset: a guess; no image has a class")
	}
	if s.Model.Preset == "" {
		next = "choose the model's preset in it; " + next
	}
	const text = "%d methods on %d of %d images: about %s on two cores\n"
	fmt.Fprintf(u.out, text, len(s.Methods), s.Count, s.Folder.Images, s.Time())
	u.hint(next)
}

// Tied returns the presets with which the model is right as often as with the chosen one.
func (s *starter) Tied() (names []string) {
	i := slices.IndexFunc(s.Accuracies, func(a registry.Accuracy) bool { return a.Preset == s.Model.Preset })
	for k, a := range s.Accuracies {
		if k != i && a.Correct == s.Accuracies[i].Correct {
			names = append(names, a.Preset)
		}
	}
	return names
}

// create writes the experiment, unless its file exists.
func (s *starter) create(dir string, b []byte) error {
	p, err := here()
	if err == nil {
		err = p.realNamed(dir)
	}
	if err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o777); err == nil {
		err = createFile(s.File, b)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return s.exists()
	case err != nil:
		return environment(err)
	}
	return nil
}

func (s *starter) exists() error {
	return usage(fmt.Errorf("%s exists", s.File), "move it away, or name another folder")
}

// right tells how often the model is right when a preset feeds it.
func (s *starter) right(preset string) string {
	i := slices.IndexFunc(s.Accuracies, func(a registry.Accuracy) bool { return a.Preset == preset })
	return fmt.Sprintf("%d of %d images", s.Accuracies[i].Correct, s.Accuracies[i].Images)
}

// Step is the number of pixels that come or go at once.
func (s *starter) Step() int { return (s.Model.Feed.Height*s.Model.Feed.Width + s.Steps - 1) / s.Steps }

// seenFrom returns path relative to dir, or as it is where it's absolute, an address or empty.
func seenFrom(dir, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) || isAddress(path) {
		return path, nil
	}
	from, err := filepath.Abs(dir)
	to, errTo := filepath.Abs(path)
	if err = cmp.Or(err, errTo); err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

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
	Model                      registry.Inspection
	Folder                     registry.Folder
	Accuracies                 []registry.Accuracy // measured, by preset
}

func writeStarter(ctx context.Context, u *ui, dir, model, images string, look *registry.Look) error {
	if _, err := registry.OpenRuntime(); err != nil {
		return err
	}
	model, modelAs, err := u.local(ctx, model, true)
	if err != nil {
		return err
	}
	images, imagesAs, err := u.local(ctx, images, true)
	if err != nil {
		return err
	}
	x, err := inspected(ctx, model, look)
	if err != nil {
		return err
	}
	if x.Problem != "" {
		return fmt.Errorf("%s: %s", model, x.Problem)
	}
	folder, err := registry.LookInto(images)
	if err != nil {
		return environment(err)
	}
	base := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	name := cmp.Or(strings.TrimLeft(withoutOthers(base, "._-"), "._-"), "experiment")
	s := starter{Name: name, Folder: folder}
	s.File = filepath.Join(dir, s.Name+".yaml")
	if folder.Labelled > 0 {
		if s.Accuracies, x.Preset, err = registry.Measure(ctx, model, *look, &x, images); err != nil {
			if ctx.Err() != nil {
				return err
			}
			u.warn(fmt.Sprintf("presets can't be measured on these images: %v", err))
		}
	}
	if model, err = seenFrom(dir, modelAs); err == nil {
		images, err = seenFrom(dir, imagesAs)
	}
	if err != nil {
		return environment(err)
	}
	s.Model, s.Images, s.Stanza = x, registry.Quote(images), indent(x.StanzaAt(*look, model), "  ")
	t := template.New("starter").Funcs(template.FuncMap{"method": s.method, "right": s.right, "div": div})
	var b bytes.Buffer
	if err := template.Must(t.Parse(starterText)).Execute(&b, &s); err != nil {
		return err
	}
	if err := s.create(dir, b.Bytes()); err != nil {
		return err
	}
	fmt.Fprintln(u.out, s.File)
	next := fmt.Sprintf("runexp run %s --limit 4", quote(s.File))
	if x.Preset != "" {
		const text = "with preset %s the model is right on %s; next: %s"
		u.hint(fmt.Sprintf(text, x.Preset, s.right(x.Preset), next))
	} else {
		u.hint("choose the model's preset in it, then: " + next)
	}
	return nil
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
		return usage(fmt.Errorf("%s exists", s.File), "move it away, or name another folder")
	case err != nil:
		return environment(err)
	}
	return nil
}

// method returns the line of an attribution method with parameters, if it fits the model.
func (s *starter) method(id, with string) string {
	name := "attribute/" + id
	if !slices.Contains(s.Model.Methods, registry.Fit{Method: name, Fits: true}) {
		return ""
	}
	if with != "" {
		with = ", with: {" + with + "}"
	}
	return fmt.Sprintf("\n    %-21s {uses: %s%s}", id+":", name, with)
}

// right tells how often the model is right when a preset feeds it.
func (s *starter) right(preset string) string {
	i := slices.IndexFunc(s.Accuracies, func(a registry.Accuracy) bool { return a.Preset == preset })
	return fmt.Sprintf("%d of %d images", s.Accuracies[i].Correct, s.Accuracies[i].Images)
}

// Side is the length of the shorter side of the model's images, and Step a 32nd of their pixels.
func (s *starter) Side() int { return min(s.Model.Feed.Height, s.Model.Feed.Width) }
func (s *starter) Step() int { return (s.Model.Feed.Height*s.Model.Feed.Width + 31) / 32 }

// div divides, and returns at least 1.
func div(a, b int) int { return max(1, a/b) }

// seenFrom returns path relative to dir, or as it is where it's absolute or an address.
func seenFrom(dir, path string) (string, error) {
	if filepath.IsAbs(path) || isAddress(path) {
		return path, nil
	}
	from, err := filepath.Abs(dir)
	to, errTo := filepath.Abs(path)
	if err = cmp.Or(err, errTo); err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

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

func newVerb() *verb {
	f := &flags{}
	var model, images, runtime string
	f.text(&model, "model", "FILE", "the ONNX file")
	f.text(&images, "images", "FOLDER", "photographs: one folder a class, or a labels.csv with the\ncolumns file and label, or just images")
	look := f.look()
	f.library(&runtime)
	return &verb{
		name: "new", args: "[DIR] --model MODEL.onnx --images FOLDER", short: "a commented experiment for your model and images",
		flags: f, most: 1, needs: "a folder", example: "new experiments --model net.onnx --images photos",
		about: `Writes an experiment to start from into DIR, or the working folder: your model,
your images, the methods that fit the model, two metrics and a leaderboard, with
comments. The file is called like the model. One that exists isn't touched. If the
images have labels, it measures on a dozen of them how the model takes pixels.
`,
		run: func(ctx context.Context, u *ui, args []string) error {
			if model == "" || images == "" {
				return misuse("new needs --model and --images")
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
	File, Name  string
	Methods     []string // lines
	PresetNotes []string // lines of a comment
	Stanza      string
	ImageNote   string
	Images      string // parameters of dataset/folder
	Labelled    bool
	Step        int // pixels
}

func writeStarter(ctx context.Context, u *ui, dir, model, images string, look *registry.Look) error {
	if _, err := registry.OpenRuntime(); err != nil {
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
	var accuracies []registry.Accuracy
	if folder.Labelled > 0 {
		if accuracies, x.Preset, err = registry.Measure(ctx, model, *look, &x, images); err != nil {
			if ctx.Err() != nil {
				return err
			}
			u.warn(fmt.Sprintf("presets can't be measured on these images: %v", err))
		}
	}
	base := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	s := starter{Name: cmp.Or(strings.TrimLeft(withoutOthers(base, "._-"), "._-"), "experiment"), Labelled: folder.Labelled > 0}
	s.File = filepath.Join(dir, s.Name+".yaml")
	if model, err = seenFrom(dir, model); err == nil {
		images, err = seenFrom(dir, images)
	}
	if err != nil {
		return environment(err)
	}
	s.fill(&x, *look, model, images, folder, accuracies)
	var b bytes.Buffer
	if err := template.Must(template.New("starter").Parse(starterText)).Execute(&b, s); err != nil {
		return err
	}
	if err := s.create(dir, b.Bytes()); err != nil {
		return err
	}
	fmt.Fprintln(u.out, s.File)
	next := fmt.Sprintf("runexp run %s --limit 4", quote(s.File))
	if x.Preset != "" {
		u.hint(fmt.Sprintf("with preset %s the model is right on %s; next: %s", x.Preset, right(accuracies, x.Preset), next))
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

// fewClasses is how many classes absLRP needs at least for its paper's single pass: every
// other class starts with −1/N, and few of them outweigh the target together.
const fewClasses = 100

// fill says what depends on the model and the images.
func (s *starter) fill(x *registry.Inspection, look registry.Look, model, images string, folder registry.Folder, accuracies []registry.Accuracy) {
	h, w := x.Feed.Height, x.Feed.Width
	side := min(h, w)
	window, stride := max(1, side/7), max(1, side/14)
	s.Step = (h*w + 31) / 32
	fits := map[string]bool{}
	for _, m := range x.Methods {
		fits[m.Method] = m.Fits && m.Why == ""
	}
	abslrp, why := "", ""
	if x.Feed.Classes < fewClasses {
		abslrp, why = "contrast: two-passes", fmt.Sprintf("  # of %d classes; the paper's single pass is often negative everywhere below %d", x.Feed.Classes, fewClasses)
	}
	for _, m := range []struct{ id, with string }{
		{"constant", ""},
		{"random", "reduce: abs-sum"},
		{"saliency", "reduce: abs-sum"},
		{"input-x-gradient", ""},
		{"integrated-gradients", "steps: 32"},
		{"smoothgrad", "reduce: abs-sum"},
		{"guided-backprop", "reduce: abs-sum"},
		{"abslrp", abslrp},
		{"grad-cam", ""},
		{"occlusion", fmt.Sprintf("window: %d, stride: %d", window, stride)},
		{"rise", "masks: 400, cells: 7"},
	} {
		if !fits["attribute/"+m.id] {
			continue
		}
		line := fmt.Sprintf("%-21s {uses: attribute/%s", m.id+":", m.id)
		if m.with != "" {
			line += ", with: {" + m.with + "}"
		}
		if line += "}"; m.id == "abslrp" {
			line += why
		}
		s.Methods = append(s.Methods, line)
	}
	s.PresetNotes = append(s.PresetNotes, "How pixels are fed must be as in training; the file doesn't tell.")
	switch {
	case x.Preset != "":
		s.PresetNotes = append(s.PresetNotes, fmt.Sprintf("Measured: with this preset the model is right on %s.", right(accuracies, x.Preset)))
	case len(accuracies) > 0:
		s.PresetNotes = append(s.PresetNotes, "With none of them the model is clearly better than guessing on these images: are",
			"its classes numbered as theirs are? A guess stands here.")
	default:
		s.PresetNotes = append(s.PresetNotes, "A guess stands here.")
	}
	s.PresetNotes = append(s.PresetNotes, "From pixels in [0,1] the presets make:")
	for _, p := range x.Presets {
		line := fmt.Sprintf("  %-18s %s", p.Name, p.Doc)
		if len(accuracies) > 0 {
			line += ": right on " + right(accuracies, p.Name)
		}
		s.PresetNotes = append(s.PresetNotes, line)
	}
	s.Stanza = indent(x.StanzaAt(look, "model", model), "  ")
	s.Images = fmt.Sprintf("{path: %s, size: %dx%d}", registry.Quote(images), h, w)
	if h == w {
		s.Images = fmt.Sprintf("{path: %s, resize: %d, crop: %d}", registry.Quote(images), side, side)
	}
	s.ImageNote = fmt.Sprintf("%d images, %d of them with a class; the model takes %d×%d pixels.", folder.Images, folder.Labelled, h, w)
}

// right says how often a model is right that is fed by a preset.
func right(accuracies []registry.Accuracy, preset string) string {
	i := slices.IndexFunc(accuracies, func(a registry.Accuracy) bool { return a.Preset == preset })
	return fmt.Sprintf("%d of %d images", accuracies[i].Correct, accuracies[i].Images)
}

// seenFrom returns path relative to dir, or as it is where it's absolute.
func seenFrom(dir, path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

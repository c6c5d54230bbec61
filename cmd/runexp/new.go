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

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/ort"
)

func newVerb(f flags) *verb {
	var model, images, texts, tokenizer, runtime string
	f["--model"], f["--images"], f["--onnxruntime"] = &model, &images, &runtime
	f["--texts"], f["--tokenizer"] = &texts, &tokenizer
	look := f.look()
	f["--preset"] = &look.Preset
	return &verb{
		name: "new", takes: arity{0, 2, "at most quickstart and a folder"},
		words: func() []string { return []string{quickstartName} },
		run: func(ctx context.Context, u *ui, args []string) error {
			switch sample := len(args) > 0 && args[0] == quickstartName &&
				model+images+texts == ""; {
			case sample:
				return writeQuickstart(u, append(args[1:], ".")[0])
			case len(args) > 1:
				return misuse("new takes one argument, a folder, not %d; only quickstart stands before it", 2)
			case images != "" && texts != "":
				return misuse("new needs --images for a model of images, or --texts for one of texts, " +
					"not both")
			case look.Preset != "" && texts != "":
				return misuse("--preset is for --images")
			case tokenizer != "" && texts == "":
				return misuse("--tokenizer is for --texts")
			case model == "" || images+texts == "":
				return misuse("new needs --model, and --images or --texts, or quickstart")
			}
			ort.Use(runtime)
			if texts != "" {
				return writeTextStarter(ctx, u, append(args, ".")[0], model, texts, tokenizer, look)
			}
			return writeStarter(ctx, u, append(args, ".")[0], model, images, look)
		},
	}
}

//go:embed starter.yaml.tmpl
var starterText string

// A starter holds the values of the template.
type starter struct {
	File, Name, Stanza, Images string

	Model     registry.Inspection
	Folder    registry.Folder
	Measured  *registry.Measured  // nil without a measurement
	Numbering *registry.Numbering // of the classes, if measured
	NamesFile string              // file with the names of the model's classes
	Given     string              // the preset, as the user names it
	Doubt     string              // why the preset is a guess, or the classes aren't numbered

	// lines of the methods to compare, and of the methods that are left out, with the reason
	Methods, Others []string
	Count           int     // number of images
	Steps, Coarse   int     // steps of the curves; the divisor of the methods' settings
	seconds         float64 // estimated time of the run
	Seed            int

	// What a tournament adds: its outcome in lines, the seed of its draw and the images of the draw on which
	// it chose, and the leaderboard's claim and column of its metric; zero without one.
	Found         []string
	Draw, Skip    int
	Claim, Column string
}

func writeStarter(ctx context.Context, u *ui, dir, model, images string, look *registry.Look) error {
	if _, err := ort.Default(); err != nil {
		return err
	}
	s := starter{Name: starterName(model), Seed: 1}
	s.File = filepath.Join(dir, s.Name+".yaml")
	if _, err := os.Lstat(s.File); err == nil {
		return exists(s.File)
	}
	if err := s.examine(ctx, u, dir, model, images, look); err != nil {
		return err
	}
	s.budget()
	var err error
	if s.NamesFile, err = s.namesFrom(dir); err != nil {
		return err
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	if err := s.create(dir, s.Name+".yaml", text); err != nil {
		return err
	}
	s.report(u)
	return nil
}

// examine finds out how the model takes the images, which an experiment in dir then reads.
func (s *starter) examine(ctx context.Context, u *ui, dir, model, images string, look *registry.Look) error {
	model, modelAs, err := u.local(ctx, model, true)
	if err != nil {
		return err
	}
	images, imagesAs, err := u.local(ctx, images, true)
	if err != nil {
		return err
	}
	if err := s.look(ctx, u, model, images, look); err != nil {
		return err
	}
	if s.Given = look.Preset; s.Given != "" {
		var known []string
		for _, p := range s.Model.Presets {
			known = append(known, p.Name)
		}
		if !slices.Contains(known, s.Given) {
			return usage(fmt.Errorf("--preset is one of %s, not %q", strings.Join(known, ", "), s.Given),
				plan.Guess(s.Given, known))
		}
	}
	if err := s.measure(ctx, u, model, look); err != nil {
		return err
	}
	given := modelAs
	for _, path := range []*string{&modelAs, &imagesAs, &s.Folder.Masks, &s.Folder.Boxes} {
		if *path, err = seenFrom(dir, *path); err != nil {
			return environment(err)
		}
	}
	s.Model.File, s.Images = given, imagesAs
	s.Stanza = indent(s.Model.StanzaAt(*look, modelAs), "  ")
	return nil
}

// look inspects the model and looks into the folder of images. Of several outputs it takes the one that has
// the classes of the images.
func (s *starter) look(ctx context.Context, u *ui, model, images string, look *registry.Look) error {
	folder, failed := registry.LookInto(images)
	var parts *registry.NestedError
	if failed != nil && !errors.As(failed, &parts) {
		return environment(failed)
	}
	x, err := inspected(ctx, model, look)
	if err != nil {
		return err
	}
	if look.Output == "" && parts == nil {
		if output := suitable(x.Candidates, folder.Classes); x.Problem != "" && output != "" {
			look.Output = output
			if x, err = inspected(ctx, model, look); err != nil {
				return err
			}
			fmt.Fprintf(u.out, "output %s: the only one with a number for each of the %d classes of the "+
				"images\n", output, folder.Classes)
		}
	}
	if x.Problem != "" {
		return fmt.Errorf("%s: %s", model, x.Problem)
	}
	if len(x.Feed.Outputs) > 0 {
		return usage(fmt.Errorf("%s has no classes, and new compares methods by classes of images", model),
			"write an experiment with target: "+x.Targets[0]+", say: runexp inspect shows what it returns")
	}
	if x.Texts != nil {
		return usage(fmt.Errorf("%s takes texts, not images", model),
			"runexp new takes their file by --texts")
	}
	if parts != nil {
		return misplaced(images, &parts.Nested, x.Feed.Classes)
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
	s.Model, s.Folder = x, folder
	return nil
}

// starterPage is the template of an experiment for images.
var starterPage = parsed("starter", starterText, template.FuncMap{"quote": registry.Quote,
	"list": func(words []string) string { return strings.Join(words, ", ") }})

// text fills the template.
func (s *starter) text() ([]byte, error) {
	var b bytes.Buffer
	err := starterPage().Execute(&b, s)
	return b.Bytes(), err
}

// suitable returns the only output with this number of classes, "" if there are none or several.
func suitable(outputs []registry.Candidate, classes int) (name string) {
	for _, c := range outputs {
		if c.Classes != classes {
			continue
		}
		if name != "" {
			return ""
		}
		name = c.Output
	}
	return name
}

// report prints which files were written, and the reasons for their settings.
func (s *starter) report(u *ui) {
	fmt.Fprintln(u.out, s.File)
	next := "next: runexp run " + quote(s.File)
	s.verdict(u)
	s.leads(u)
	if s.Given == "" && s.Model.Measured == nil || s.Warning() != "" {
		next = "choose the model's preset in it; " + next
	}
	const text = "%d methods on %d of %d images: about %s on two cores\n"
	fmt.Fprintf(u.out, text, len(s.Methods), s.Count, s.Folder.Images, s.Time())
	u.power(s.File)
	u.hint(next)
}

// power prints what the tests of a new experiment can confirm. An experiment that doesn't load is reported by
// the command that runs it.
func (u *ui) power(file string) {
	p, err := plan.Load(file, registry.Builtin(), plan.Overrides{})
	if err != nil {
		return
	}
	for _, s := range p.Powers() {
		fmt.Fprintln(u.out, s)
	}
}

// powers says what the tests of a run can't confirm. Where it is everything, people can still stop the run.
func (u *ui) powers(p *plan.Plan) {
	for _, s := range p.Powers() {
		if !s.Enough {
			u.say("%s", s)
		}
	}
}

// create writes a file of the experiment into its folder, unless it exists.
func (s *starter) create(dir, name string, b []byte) error {
	p, err := here()
	if err == nil {
		err = p.realNamed(dir)
	}
	if err != nil {
		return err
	}
	file := filepath.Join(dir, name)
	if err = os.MkdirAll(dir, 0o777); err == nil {
		err = createFile(file, b)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return exists(file)
	case err != nil:
		return environment(err)
	}
	return nil
}

func exists(file string) error {
	return usage(fmt.Errorf("%s exists", file), "move it away, or name another folder")
}

// Step is the number of pixels that a curve inserts or removes at once.
func (s *starter) Step() int { return (s.Model.Feed.Height*s.Model.Feed.Width + s.Steps - 1) / s.Steps }

// seenFrom returns path relative to dir; absolute paths, addresses and the empty path stay the same.
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

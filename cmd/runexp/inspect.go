package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

func inspectVerb() *verb {
	f := &flags{}
	look := f.look()
	var asJSON bool
	f.toggle(&asJSON, "json", "all of it as JSON")
	var runtime string
	f.library(&runtime)
	return &verb{
		name: "inspect", args: "MODEL.onnx", short: "what a model is, and which methods fit it", flags: f,
		least: 1, most: 1, needs: "an ONNX file", example: "inspect experiments/quickstart/resnet.onnx",
		about: `Describes a model: inputs, outputs, classes, who wrote it; its operators, and
whether gradients are known for them; batch normalisation, layers, batch and size;
which attribution methods fit it, and why others don't; and the lines that read it
in an experiment. The model is run once, for what its file leaves open.
`,
		run: func(ctx context.Context, u *ui, args []string) error {
			registry.UseRuntime(runtime)
			x, err := inspected(ctx, args[0], look)
			if err != nil {
				return err
			}
			if asJSON {
				e := u.json()
				e.SetIndent("", "  ")
				return e.Encode(x)
			}
			writeInspection(u.out, &x)
			return nil
		},
	}
}

// inspected inspects a file; one that isn't there is the machine's fault.
func inspected(ctx context.Context, file string, look *registry.Look) (registry.Inspection, error) {
	x, err := registry.Inspect(ctx, file, *look)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return x, environment(err)
	}
	if field := (*stages.FieldError)(nil); errors.As(err, &field) {
		return x, usage(fmt.Errorf("--%s: %w", field.Field, err), nearest(field.Name, field.Names))
	}
	return x, err
}

func writeInspection(w io.Writer, x *registry.Inspection) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		for i, line := range strings.Split(fmt.Sprintf(format, args...), "\n") {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(t, "%s\t%s\n", name, line)
		}
	}
	row("file", "%s, %s", x.File, size(x.Bytes))
	row("written by", "%s: opset %d, IR version %d", cmp.Or(x.Producer, "an unnamed program"), x.Opset, x.IR)
	for _, v := range x.Inputs {
		row("input", "%s", v)
	}
	if x.Range != nil {
		row("", "its bytes stand for %.4g to %.4g", x.Range[0], x.Range[1])
	}
	for _, v := range x.Outputs {
		row("output", "%s", v)
	}
	row("weights", "%d numbers, %s", x.Weights.Numbers, strings.Join(x.Weights.Types, ", "))
	row("operators", "%s", operators(x.Nodes, x.Simplified == nil))
	row("batch norm", "%s", normalisation(x))
	if len(x.Leading) > 0 {
		row("begins with", "%s: it may normalise its input itself", strings.Join(x.Leading, ", "))
	}
	if x.Problem != "" {
		row("not run", "%s", x.Problem)
	} else {
		writeRun(row, x)
	}
	t.Flush()
	if x.Stanza == "" {
		return
	}
	fmt.Fprintf(w, "\nThe file doesn't tell how pixels are fed. The presets, of pixels in [0,1]:\n\n")
	for _, p := range x.Presets {
		fmt.Fprintf(t, "  %s\t%s\n", p.Name, p.Doc)
	}
	t.Flush()
	fmt.Fprintf(w, "\nIn an experiment, with the preset that it was trained with:\n\n%s", indent(x.Stanza, "  "))
}

// writeRun writes what was seen by running the model.
func writeRun(row func(name, format string, args ...any), x *registry.Inspection) {
	f := &x.Feed
	channels := "3 channels"
	if f.Channels == 1 {
		channels = "1 channel"
	}
	row("images", "%d×%d pixels, %s, %s%s", f.Height, f.Width, channels, f.Layout, sizes(x))
	answer := "logits"
	switch {
	case x.Cut != "":
		answer = fmt.Sprintf("a %s ends the model; methods explain what enters it, %s", x.Cut, f.Output)
	case f.Probabilities && f.Classes == 1:
		answer = "the probability of one class, whose logarithm counts as logit; its opposite is no class"
	case f.Classes == 1:
		answer = "a logit, whose sigmoid is the probability of one class"
	case f.Independent && !f.Probabilities:
		answer = "logits of classes with a probability each"
	case f.Probabilities:
		answer = "probabilities, whose logarithms count as logits"
	}
	row("classes", "%d; %s", f.Classes, answer)
	batch := "any: images get the answers that they get alone"
	if f.Batch > 0 {
		batch = fmt.Sprintf("%d alone", f.Batch)
	}
	row("batch", "%s", batch)
	if x.Simplified != nil {
		row("simplified", "%s", operators(x.Simplified, true))
	}
	if x.Gradient != "" {
		row("gradient", "none: %s", x.Gradient)
	} else {
		row("gradient", "known for all that the answer passes through")
	}
	if x.Final == nil {
		row("layers", "input; no inner value has places that everything passes through")
	} else {
		row("layers", "input\nmiddle: %s\nfinal: %s", x.Middle, x.Final)
		if len(x.Final.Shape) == 3 {
			row("", "their places are tokens: patches, row by row, behind a class token if there is one")
		}
	}
	// Methods by what is remarked of them, in the order of the first that it is remarked of.
	type remark struct {
		fits bool
		why  string
	}
	remarks := []remark{{fits: true}}
	of := map[remark][]string{}
	for _, m := range x.Methods {
		r := remark{m.Fits, m.Why}
		if !slices.Contains(remarks, r) {
			remarks = append(remarks, r)
		}
		of[r] = append(of[r], m.Method)
	}
	for _, r := range remarks {
		label, text := "fits", wrap(of[r])
		if !r.fits {
			label = "doesn't fit"
		}
		if r.why != "" || !r.fits {
			text += ":\n" + r.why
		}
		row(label, "%s", text)
	}
}

func sizes(x *registry.Inspection) string {
	switch {
	case x.OpenHeight && x.OpenWidth:
		return fmt.Sprintf("; the file leaves the size open, %d×%d was tried", x.Feed.Height, x.Feed.Width)
	case x.OpenHeight:
		return fmt.Sprintf("; the file fixes the width and leaves the height open, %d was tried", x.Feed.Height)
	case x.OpenWidth:
		return fmt.Sprintf("; the file fixes the height and leaves the width open, %d was tried", x.Feed.Width)
	case x.OtherSize > 0:
		return fmt.Sprintf("; size: %d works too, for grids of mosaic/grid", x.OtherSize)
	}
	return "; no other size"
}

// operators lists operators with their numbers; marked are those without a
// gradient, which needn't concern anyone where they are simplified away.
func operators(list []registry.NodeCount, mark bool) string {
	var words []string
	total := 0
	for _, n := range list {
		total += n.Count
		text := fmt.Sprintf("%s %d", n.Operator, n.Count)
		if mark && !n.Supported {
			text += " (no gradient)"
		}
		words = append(words, text)
	}
	return fmt.Sprintf("%d nodes\n%s", total, wrap(words))
}

// wrap joins words with commas, in lines that a terminal has room for.
func wrap(words []string) string {
	var b strings.Builder
	line := 0
	for i, w := range words {
		switch line += len(w) + 2; {
		case i == 0:
			line = len(w)
		case line > 64:
			b.WriteString(",\n")
			line = len(w)
		default:
			b.WriteString(", ")
		}
		b.WriteString(w)
	}
	return b.String()
}

func normalisation(x *registry.Inspection) string {
	switch {
	case x.Norm.Training > 0:
		return fmt.Sprintf("%d of %d nodes normalise by the batch, as in training: export the model in evaluation mode", x.Norm.Training, x.Norm.Separate)
	case x.Norm.Separate > 0:
		return fmt.Sprintf("%d nodes apart: rules of their own, such as absLRP's, can see them; LRP merges them into convolutions", x.Norm.Separate)
	case x.Norm.Folded:
		return "merged into convolutions by the exporter, as LRP wants it; rules of its own, such as absLRP's, can't see it\nREADME.md says how to export a model with it apart"
	}
	return "none in the file: there was none, or the exporter merged it without a trace"
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

func inspectVerb(f flags) *verb {
	look := f.look()
	var asJSON, layers bool
	var runtime, devices string
	f["--json"], f["--layers"], f["--onnxruntime"], f["--devices"] = &asJSON, &layers, &runtime, &devices
	f["--precision"] = &look.Precision
	return &verb{
		name: "inspect", takes: arity{1, 1, "an ONNX file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			ort.Use(runtime)
			on, err := measuredOn(devices)
			if err != nil {
				return err
			}
			file, address, err := u.local(ctx, args[0], false)
			if err != nil {
				return err
			}
			x, err := inspected(ctx, file, look, on...)
			if err != nil {
				return err
			}
			if x.File = address; isAddress(address) && x.Stanza != "" {
				x.Stanza = x.StanzaAt(*look, address)
			}
			if asJSON {
				e := u.json()
				e.SetIndent("", "  ")
				return e.Encode(x)
			}
			t := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
			defer t.Flush()
			if layers {
				return layersPage().Execute(t, &x)
			}
			return inspectionPage().Execute(t, &x)
		},
	}
}

// measuredOn returns the first device of a list, or none for an empty list.
func measuredOn(list string) ([]stages.Device, error) {
	if list == "" {
		return nil, nil
	}
	devices, err := device.Parse(list)
	if err != nil {
		return nil, usage(err, "")
	}
	if _, err := usable(devices[0]); err != nil {
		return nil, err
	}
	return devices[:1], nil
}

// inspected inspects a model. A missing file is an error of the environment.
func inspected(ctx context.Context, file string, look *registry.Look, on ...stages.Device) (
	registry.Inspection, error,
) {
	x, err := registry.Inspect(ctx, file, *look, on...)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return x, environment(err)
	}
	if field := (*stages.FieldError)(nil); errors.As(err, &field) {
		return x, usage(fmt.Errorf("--%s: %w", field.Field, err), plan.Guess(field.Name, field.Names))
	}
	return x, err
}

//go:embed inspection.tmpl
var inspectionText string

// inspectionPage is the template of a model's description, with tabs between columns.
var inspectionPage = parsed("inspection", inspectionText, template.FuncMap{
	"size": size, "operators": operators, "remarks": remarks, "lines": lines, "wrap": wrap, "indent": indent,
	"short": short,
	"use":   use,
	"in":    inFloat16,
	"list":  func(words []string) string { return strings.Join(words, ", ") },
	"count": countOf,
})

// countOf rounds a large number to three digits.
func countOf(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.3g billion", float64(n)/1e9)
	}
	return fmt.Sprintf("%.3g million", float64(n)/1e6)
}

// layersPage lists the layers that methods accept by name.
var layersPage = parsed("layers", `{{if .Problem}}not run	{{.Problem}}
{{end}}{{range .Layers}}{{.}}
	{{- if eq .Name $.Middle.Name}}	middle{{end}}{{if eq .Name $.Final.Name}}	final{{end}}
{{end}}`, nil)

// lines indents the further lines of a text to the second column.
func lines(text string) string { return strings.ReplaceAll(text, "\n", "\n\t") }

// A remark groups the methods that fit a model, or don't, for the same reason.
type remark struct {
	Fits    bool
	Why     string
	Methods []string
}

// remarks groups methods by their remark: first the methods without one, then in the order of appearance.
func remarks(methods []registry.Fit) []remark {
	list := []remark{{Fits: true}}
	for _, m := range methods {
		i := slices.IndexFunc(list, func(r remark) bool { return r.Fits == m.Fits && r.Why == m.Why })
		if i < 0 {
			i, list = len(list), append(list, remark{Fits: m.Fits, Why: m.Why})
		}
		list[i].Methods = append(list[i].Methods, m.Method)
	}
	return list
}

// short shortens the reason why a method doesn't fit if the same reason is given for the lack of gradients.
func short(gradient, why string) string {
	if why == gradient {
		return "needs gradients: see above"
	}
	return why
}

// use describes how a program uses a device.
func use(p registry.Usage) string {
	onCPU := 0
	for _, f := range p.Fallbacks {
		onCPU += f.Nodes
	}
	text := fmt.Sprintf("%s of %d rows: %.3g s a run", p.Name(), p.Batch, p.Run)
	if p.Computing > 0 {
		text += fmt.Sprintf(", %.0f%% of which the device computes", 100*p.Computing/p.Run)
	}
	text += fmt.Sprintf("\n%d nodes, ", p.Nodes)
	if onCPU == 0 {
		text += "all on the device"
	} else {
		text += fmt.Sprintf("%d of them on the CPU: %s\nthese, with %d copies to the CPU (%s) and "+
			"%d back (%s), take %.2g%% of the time", onCPU, p.Operators(), p.ToHost.Number,
			size(p.ToHost.Bytes), p.FromHost.Number, size(p.FromHost.Bytes), 100*p.Cost)
	}
	return lines(fmt.Sprintf("%s\nreads %s, returns %s", text, size(p.Inputs.Bytes), size(p.Outputs.Bytes)))
}

// inFloat16 lists the operators of a program in float16 by what they compute in, and why.
func inFloat16(nodes []registry.Halved) string {
	type group struct {
		float16 bool
		why     string
	}
	var order []group
	by := map[group][]registry.NodeCount{}
	for _, n := range nodes {
		g := group{n.Float16, n.Why}
		if by[g] == nil {
			order = append(order, g)
		}
		i := slices.IndexFunc(by[g], func(c registry.NodeCount) bool { return c.Operator == n.Operator })
		if i < 0 {
			i, by[g] = len(by[g]), append(by[g], registry.NodeCount{Operator: n.Operator})
		}
		by[g][i].Count++
	}
	var text []string
	for _, float16 := range []bool{true, false} {
		for _, g := range order {
			if g.float16 != float16 {
				continue
			}
			var words []string
			for _, c := range by[g] {
				words = append(words, fmt.Sprintf("%s %d", c.Operator, c.Count))
			}
			text = append(text, map[bool]string{true: "float16", false: "float32"}[float16]+"\t"+
				lines(wrap(words)+":\n"+folded(g.why)))
		}
	}
	return strings.Join(text, "\n")
}

// operators lists operators with their numbers of nodes. With mark it marks operators without a gradient;
// these are no obstacle if simplification removes them.
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
	return lines(fmt.Sprintf("%d nodes\n%s", total, wrap(words)))
}

// wrap joins words with commas, in lines that fit a terminal.
func wrap(words []string) string { return joined(words, ",") }

// folded breaks a sentence into such lines.
func folded(sentence string) string { return joined(strings.Fields(sentence), "") }

func joined(words []string, comma string) string {
	var b strings.Builder
	line := 0
	for i, w := range words {
		switch line += len(w) + len(comma) + 1; {
		case i == 0:
			line = len(w)
		case line > 64:
			b.WriteString(comma + "\n")
			line = len(w)
		default:
			b.WriteString(comma + " ")
		}
		b.WriteString(w)
	}
	return b.String()
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// flags are a verb's flags. Unlike those of a plain flag.FlagSet they may follow arguments, an unknown
// one gets the nearest known one as a hint, and each is declared together with its lines of the help.
type flags struct {
	flag.FlagSet
	help strings.Builder
}

func newFlags() *flags {
	f := &flags{}
	f.Init("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// document adds a flag's lines to the help, in the order of declaration. value names what the flag takes.
func (f *flags) document(name, value, doc string) {
	const column = 23
	indented := strings.ReplaceAll(doc, "\n", "\n"+strings.Repeat(" ", column))
	fmt.Fprintf(&f.help, "%-*s%s\n", column, "  "+dashed(name)+" "+value, indented)
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// toggle declares a flag that takes no value.
func (f *flags) toggle(to *bool, name, doc string) {
	f.document(name, "", doc)
	f.BoolVar(to, name, false, "")
}

// text declares a flag that takes a value; left out, to keeps what it holds.
func (f *flags) text(to *string, name, value, doc string) {
	f.document(name, value, doc)
	f.StringVar(to, name, *to, "")
}

// list declares a flag that may be given several times.
func (f *flags) list(to *[]string, name, value, doc string) {
	f.document(name, value, doc)
	f.Func(name, "", func(s string) error {
		*to = append(*to, s)
		return nil
	})
}

// count declares a flag that takes a whole number from 1, and is 0 when left out.
func (f *flags) count(to *int, name, doc string) {
	f.document(name, "N", doc)
	f.Func(name, "", func(s string) error {
		n, err := strconv.Atoi(s)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("%s is out of range", s)
		case err != nil:
			return fmt.Errorf("%q is not a whole number", s)
		case n < 1:
			return fmt.Errorf("%d is less than 1; leave the flag out for the default", n)
		}
		*to = n
		return nil
	})
}

// The groups of flags that several verbs have. Each begins a paragraph of the help.

// narrow declares the flags that override or narrow an experiment.
func (f *flags) narrow() *plan.Overrides {
	o := &plan.Overrides{}
	f.help.WriteString("\n")
	f.list(&o.Set, "set", "A.with.P=V", "override a parameter (also axes.…, seed=N); may be repeated")
	f.list(&o.Only, "only", "AXIS=ID,…", "keep only these ids of an axis; may be repeated")
	f.count(&o.Limit, "limit", "at most N sources a data set")
	return o
}

// look declares the flags that choose a model's input, output and size.
func (f *flags) look() *registry.Look {
	l := &registry.Look{}
	f.text(&l.Size, "size", "N, --size HxW", "height and width, for a model that leaves them open")
	f.text(&l.Input, "input", "NAME", "the input that takes images, if there are several")
	f.text(&l.Output, "output", "NAME", "the output with the classes, if it isn't the first")
	return l
}

// library declares the flag that names ONNX Runtime.
func (f *flags) library(to *string) {
	f.text(to, "onnxruntime", "PATH", "the library, or a folder that has it: $ONNXRUNTIME_LIB, lib/\n"+
		"beside the program, the user's cache folder, the system")
}

// engineFlags are those of every verb that looks into the store or computes.
type engineFlags struct {
	store, devices, runtime string
	batch, chunk            int
	same                    bool
}

func (f *flags) engine() *engineFlags {
	e := &engineFlags{store: os.Getenv("RUNEXP_STORE"), devices: "cpu"}
	f.help.WriteString("\n")
	f.text(&e.store, "store", "DIR", "where results are kept: $RUNEXP_STORE, or .runexp/store in\nthe repository's folder")
	f.text(&e.devices, "devices", "LIST", "cpu: a worker for each core; cpu:0: one with all cores;\n"+
		"cpu:0,cpu:1: two that share them; cuda:0,cuda:1")
	f.count(&e.batch, "batch", "passes handed to a device at once (16), or fewer: a\nprocessor has no more than its cache holds")
	f.count(&e.chunk, "chunk", "items of one piece of work")
	f.toggle(&e.same, "same-device", "take only stored results that the same kind of device made")
	f.library(&e.runtime)
	return e
}

var errHelp = errors.New("the user asks for help")

// parse sets flags and returns the arguments that aren't flags. After "--" nothing is a flag.
func (f *flags) parse(args []string) (rest []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			return append(rest, args...), nil
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			rest = append(rest, arg)
			continue
		case isHelp(arg):
			return nil, errHelp
		}
		name, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		known := f.Lookup(name)
		if known == nil {
			return nil, &usageError{err: fmt.Errorf("unknown flag --%s", name), hint: nearest("--"+name, f.names())}
		}
		b, ok := known.Value.(interface{ IsBoolFlag() bool })
		isBool := ok && b.IsBoolFlag()
		switch {
		case given:
		case isBool:
			value = "true"
		case len(args) == 0:
			return nil, misuse("flag --%s needs a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := f.Set(name, value); err != nil {
			if isBool {
				err = fmt.Errorf("%q is neither true nor false", value)
			}
			return nil, misuse("flag --%s: %w", name, err)
		}
	}
	return rest, nil
}

func (f *flags) names() []string {
	var names []string
	f.VisitAll(func(g *flag.Flag) { names = append(names, dashed(g.Name)) })
	return names
}

// nearest returns a question with the known name that is most like name, or "" if none is.
func nearest(name string, known []string) string {
	if k := plan.Nearest(name, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return ""
}

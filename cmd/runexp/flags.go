package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// flags are a verb's flags: they may follow arguments, an unknown one gets the nearest known one as a hint,
// and each is declared together with its lines of the help.
type flags struct {
	list []*option
	help strings.Builder
}

// An option is a flag, with its dashes.
type option struct {
	name  string
	takes bool // a value
	set   func(value string) error
}

// add declares a flag that takes a value, which its help calls so.
func (f *flags) add(name, value, doc string, set func(value string) error) {
	const column = 23
	dashed := "--" + name
	if len(name) == 1 {
		dashed = "-" + name
	}
	f.list = append(f.list, &option{dashed, value != "", set})
	indented := strings.ReplaceAll(doc, "\n", "\n"+strings.Repeat(" ", column))
	fmt.Fprintf(&f.help, "%-*s%s\n", column, "  "+dashed+" "+value, indented)
}

// toggle declares a flag that takes no value.
func (f *flags) toggle(to *bool, name, doc string) {
	f.add(name, "", doc, func(s string) (err error) {
		if *to, err = strconv.ParseBool(s); err != nil {
			err = fmt.Errorf("%q is neither true nor false", s)
		}
		return err
	})
}

// text declares a flag that takes a value; left out, to keeps what it holds.
func (f *flags) text(to *string, name, value, doc string) {
	f.add(name, value, doc, func(s string) error {
		*to = s
		return nil
	})
}

// texts declares a flag that may be given several times.
func (f *flags) texts(to *[]string, name, value, doc string) {
	f.add(name, value, doc, func(s string) error {
		*to = append(*to, s)
		return nil
	})
}

// count declares a flag that takes a whole number from 1, and is 0 when left out.
func (f *flags) count(to *int, name, doc string) {
	f.add(name, "N", doc, func(s string) error {
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
	f.texts(&o.Set, "set", "A.with.P=V", "override a parameter (also axes.…, seed=N); may be repeated")
	f.texts(&o.Only, "only", "AXIS=ID,…", "keep only these ids of an axis; may be repeated")
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
		"next to the program, the user's cache folder, the system")
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
	f.text(&e.store, "store", "DIR", "where results are kept: $RUNEXP_STORE, or .runexp/store in\n"+
		"the repository's folder")
	f.text(&e.devices, "devices", "LIST", "cpu: a worker for each core; cpu:0: one with all cores;\n"+
		"cpu:0,cpu:1: two that share them; cuda:0,cuda:1")
	f.count(&e.batch, "batch", "passes handed to a device at once (16), or fewer: a\n"+
		"processor has no more than its cache holds")
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
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		known := f.lookup(name)
		switch {
		case known == nil:
			return nil, usage(fmt.Errorf("unknown flag --%s", name), nearest("--"+name, f.names()))
		case given:
		case !known.takes:
			value = "true"
		case len(args) == 0:
			return nil, misuse("flag --%s needs a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := known.set(value); err != nil {
			return nil, misuse("flag --%s: %w", name, err)
		}
	}
	return rest, nil
}

func (f *flags) lookup(name string) *option {
	for _, g := range f.list {
		if strings.TrimLeft(g.name, "-") == name {
			return g
		}
	}
	return nil
}

func (f *flags) names() (names []string) {
	for _, g := range f.list {
		names = append(names, g.name)
	}
	return names
}

// nearest returns a question with the known name that is most like name, or "" if none is.
func nearest(name string, known []string) string {
	if k := plan.Nearest(name, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return ""
}

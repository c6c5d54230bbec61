package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// flags are a verb's flags: they may follow arguments, and an unknown one gets the nearest known one as a
// hint. The verb's page in help.tmpl describes them.
type flags []option

// An option is a flag, with its dashes.
type option struct {
	name  string
	takes bool // a value
	set   func(value string) error
}

func (f *flags) add(name string, takes bool, set func(value string) error) {
	dashed := "--" + name
	if len(name) == 1 {
		dashed = "-" + name
	}
	*f = append(*f, option{dashed, takes, set})
}

// toggle declares a flag that takes no value.
func (f *flags) toggle(to *bool, name string) {
	f.add(name, false, func(s string) (err error) {
		if *to, err = strconv.ParseBool(s); err != nil {
			err = fmt.Errorf("%q is neither true nor false", s)
		}
		return err
	})
}

// text declares a flag that takes a value; left out, to keeps what it holds.
func (f *flags) text(to *string, name string) {
	f.add(name, true, func(s string) error {
		*to = s
		return nil
	})
}

// texts declares a flag that may be given several times.
func (f *flags) texts(to *[]string, name string) {
	f.add(name, true, func(s string) error {
		*to = append(*to, s)
		return nil
	})
}

// count declares a flag that takes a whole number from 1, and is 0 when left out.
func (f *flags) count(to *int, name string) {
	f.add(name, true, func(s string) error {
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

// narrow declares the flags that override or narrow an experiment.
func (f *flags) narrow() *plan.Overrides {
	o := &plan.Overrides{}
	f.texts(&o.Set, "set")
	f.texts(&o.Only, "only")
	f.count(&o.Limit, "limit")
	return o
}

// look declares the flags that choose a model's input, output and size.
func (f *flags) look() *registry.Look {
	l := &registry.Look{}
	f.text(&l.Size, "size")
	f.text(&l.Input, "input")
	f.text(&l.Output, "output")
	return l
}

// engineFlags are those of every verb that looks into the store or computes.
type engineFlags struct {
	store, devices, runtime string
	batch, chunk            int
	same                    bool
}

func (f *flags) engine() *engineFlags {
	e := &engineFlags{store: os.Getenv("RUNEXP_STORE"), devices: "cpu"}
	f.text(&e.store, "store")
	f.text(&e.devices, "devices")
	f.count(&e.batch, "batch")
	f.count(&e.chunk, "chunk")
	f.toggle(&e.same, "same-device")
	f.text(&e.runtime, "onnxruntime")
	return e
}

var errHelp = errors.New("the user asks for help")

// parse sets flags and returns the arguments that aren't flags. After "--" nothing is a flag.
func (f flags) parse(args []string) (rest []string, err error) {
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
		i := slices.IndexFunc(f, func(o option) bool { return strings.TrimLeft(o.name, "-") == name })
		switch {
		case i < 0:
			return nil, usage(fmt.Errorf("unknown flag --%s", name), plan.Guess("--"+name, f.names()))
		case given:
		case !f[i].takes:
			value = "true"
		case len(args) == 0:
			return nil, misuse("flag --%s needs a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := f[i].set(value); err != nil {
			return nil, misuse("flag --%s: %w", name, err)
		}
	}
	return rest, nil
}

func (f flags) names() (names []string) {
	for _, g := range f {
		names = append(names, g.name)
	}
	return names
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
)

// flags maps a verb's flags, with their dashes, to the variables that they set. A *bool takes no value, a
// *[]string has an element for each time that the flag is given, an *int is at least 1, or 0 without the
// flag, and a *oneIn is 1/N or 0. Flags may follow arguments. The verb's page in help.tmpl describes them.
type flags map[string]any

func set(flag any, s string) (err error) {
	switch to := flag.(type) {
	case *string:
		if *to = s; s == "" { // as if an environment variable isn't set
			return errors.New("the value is empty: leave the flag out for the default")
		}
	case *oneIn:
		return to.set(s)
	case *[]string:
		*to = append(*to, s)
	case *bool:
		if *to, err = strconv.ParseBool(s); err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
	case *int:
		switch *to, err = strconv.Atoi(s); {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("%s is out of range", s)
		case err != nil:
			return fmt.Errorf("%q is not a whole number", s)
		case *to < 1:
			return fmt.Errorf("%d is less than 1; leave the flag out for the default", *to)
		}
	}
	return nil
}

// narrow declares the flags that override settings of an experiment or restrict it to some cells.
func (f flags) narrow() *plan.Overrides {
	o := &plan.Overrides{}
	f["--set"], f["--only"], f["--limit"] = &o.Set, &o.Only, &o.Limit
	f["--allow-python"], f["--precision"] = &o.Python, &o.Precision
	return o
}

// narrowing returns the flags that narrow would parse to o.
func narrowing(o *plan.Overrides) (args []string) {
	for _, s := range o.Set {
		args = append(args, "--set", s)
	}
	for _, s := range o.Only {
		args = append(args, "--only", s)
	}
	if o.Precision != "" {
		args = append(args, "--precision", o.Precision)
	}
	if o.Limit > 0 {
		args = append(args, "--limit", strconv.Itoa(o.Limit))
	}
	if o.Python {
		args = append(args, "--allow-python")
	}
	return args
}

// look declares the flags that choose a model's input, output, layout and size.
func (f flags) look() *registry.Look {
	l := &registry.Look{}
	f["--size"], f["--input"], f["--output"], f["--layout"] = &l.Size, &l.Input, &l.Output, &l.Layout
	f["--length"] = &l.Length
	return l
}

// engineFlags are the flags of every verb that reads the store or computes.
type engineFlags struct {
	store, devices, runtime string
	batch, chunk            int
	compare                 oneIn // which fraction of a device's items is compared with the processor
	same                    bool

	// What a share has otherwise than a run: how the store is opened, and the folder in which the models in
	// use are noted. By default that is [store.Open], and a folder of the store.
	openStore func(dir string, o store.Options) (*store.Store, error)
	running   string
}

func (f flags) engine() *engineFlags {
	e := &engineFlags{store: os.Getenv("RUNEXP_STORE"), devices: "cpu", compare: 20}
	f["--store"], f["--devices"], f["--onnxruntime"] = &e.store, &e.devices, &e.runtime
	f["--batch"], f["--chunk"], f["--same-device"] = &e.batch, &e.chunk, &e.same
	f["--compare"] = &e.compare
	return e
}

// A oneIn is a fraction 1/N, or -1 for none.
type oneIn int

func (n oneIn) String() string {
	if n < 0 {
		return "0"
	}
	return fmt.Sprintf("1/%d", int(n))
}

func (n *oneIn) set(s string) error {
	of, ok := strings.CutPrefix(s, "1/")
	k, err := strconv.Atoi(of)
	switch {
	case s == "0":
		*n = -1
	case ok && err == nil && k > 0:
		*n = oneIn(k)
	default:
		return fmt.Errorf("%q is neither 1/N nor 0", s)
	}
	return nil
}

var errHelp = errors.New("the user asks for help")

// parse sets flags and returns the other arguments. The error for an unknown flag suggests the most similar
// one. After "--" nothing is a flag.
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
		flag := cmp.Or(f["--"+name], f["-"+name])
		switch _, toggle := flag.(*bool); {
		case flag == nil:
			known := slices.Sorted(maps.Keys(f))
			return nil, usage(fmt.Errorf("unknown flag --%s", name), plan.Guess("--"+name, known))
		case given:
		case toggle:
			value = "true"
		case len(args) == 0:
			return nil, misuse("flag --%s needs a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := set(flag, value); err != nil {
			return nil, misuse("flag --%s: %w", name, err)
		}
	}
	return rest, nil
}

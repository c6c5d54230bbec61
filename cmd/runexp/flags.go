package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// flags are a verb's flags. Unlike a plain flag.FlagSet they may follow
// arguments, and an unknown one gets the nearest known one as a hint.
type flags struct{ flag.FlagSet }

func newFlags(verb string) *flags {
	f := &flags{*flag.NewFlagSet(verb, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	return f
}

var errHelp = errors.New("help is wanted")

// parse sets flags and returns the arguments that aren't flags. After "--"
// nothing is a flag.
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
			return nil, &usageError{verb: f.Name(), err: fmt.Errorf("unknown flag --%s", name), hint: nearest("--"+name, f.names())}
		}
		if b, ok := known.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() && !given {
			value, given = "true", true
		}
		if !given {
			if len(args) == 0 {
				return nil, misuse(f.Name(), "flag --%s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		if err := f.Set(name, value); err != nil {
			return nil, misuse(f.Name(), "flag --%s: %w", name, readable(known, value, err))
		}
	}
	return rest, nil
}

func (f *flags) names() []string {
	var names []string
	f.VisitAll(func(g *flag.Flag) { names = append(names, "--"+g.Name) })
	return names
}

// readable says what package flag calls a parse error.
func readable(f *flag.Flag, value string, err error) error {
	if g, ok := f.Value.(flag.Getter); ok {
		switch g.Get().(type) {
		case int:
			return fmt.Errorf("%q is not a whole number", value)
		case bool:
			return fmt.Errorf("%q is neither true nor false", value)
		}
	}
	return err
}

// list adds a flag that may be given several times.
func (f *flags) list(to *[]string, name, doc string) {
	f.Func(name, doc, func(s string) error {
		*to = append(*to, s)
		return nil
	})
}

// count adds a flag that takes a whole number from 1. Left out, to keeps what it holds.
func (f *flags) count(to *int, name, doc string) {
	f.Func(name, doc, func(s string) error {
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

// one returns the single argument that a verb takes.
func one(verb, what string, args []string) (string, error) {
	switch len(args) {
	case 0:
		return "", misuse(verb, "%s needs %s", verb, what)
	case 1:
		return args[0], nil
	}
	return "", misuse(verb, "%s takes one argument, %s, not %d", verb, what, len(args))
}

// none refuses arguments.
func none(verb string, args []string) error {
	if len(args) > 0 {
		return misuse(verb, "%s takes no argument: %q", verb, args[0])
	}
	return nil
}

// nearest returns a question with the known name that is most like name, or ""
// if none is.
func nearest(name string, known []string) string {
	best, found := (len(name)+2)/3+1, ""
	for _, k := range known {
		if d := distance(name, k); d < best {
			best, found = d, k
		}
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", found)
}

// distance counts the letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

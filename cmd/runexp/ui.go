package main

// The law of output:
//
//   - Results go to stdout, everything else to stderr.
//   - An error is one clause, "runexp: …", lower-case; a hint has its own line.
//   - Diagnostics of an experiment are printed unchanged, file:line:col first.
//   - A progress bar is for terminals; elsewhere there are plain lines.
//   - Colour is for terminals, and NO_COLOR turns it off.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"golang.org/x/term"
)

type ui struct {
	out      *output
	err      io.Writer
	terminal bool // whether err is a terminal
	color    bool
	width    func() int // the terminal's
	working  func()     // called when the first cell starts

	closing []func() error           // called when the verb has ended
	hook    func(point string) error // the store's, for tests that kill the process at a point
}

func newUI(out, err io.Writer) *ui {
	u := &ui{out: &output{to: out}, err: err, working: func() {}}
	if f, ok := err.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		u.terminal = true
		u.color = os.Getenv("NO_COLOR") == ""
		u.width = func() int {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
			return 80
		}
	}
	return u
}

// output is stdout. It remembers a failed write, so that the command reports results which couldn't be
// written. One goroutine writes at a time.
type output struct {
	to  io.Writer
	err error // the first error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// failure returns the error for results that couldn't be written.
func (o *output) failure() error {
	if o.err == nil {
		return nil
	}
	return environment(fmt.Errorf("the results can't be written: %w", o.err))
}

// json returns an encoder that writes results as JSON.
func (u *ui) json() *json.Encoder {
	e := json.NewEncoder(u.out)
	e.SetEscapeHTML(false)
	return e
}

// say writes a line for the user to stderr.
func (u *ui) say(format string, args ...any) { fmt.Fprintf(u.err, format+"\n", args...) }

// warn prints a warning to stderr.
func (u *ui) warn(sentence string) { u.say("%s %s", u.bold("warning:"), sentence) }

func (u *ui) hint(text string) {
	if text != "" {
		u.say("%s %s", u.bold("hint:"), text)
	}
}

// end reports how a command ended and returns its exit code.
func (u *ui) end(err error) int {
	if unwritten := u.out.failure(); unwritten != nil && (err == nil || errors.Is(err, u.out.err)) {
		err = unwritten
	}
	var (
		diags plan.Diags
		exit  *exitError
		bug   *plan.BugError
	)
	switch {
	case err == nil:
	case errors.As(err, &diags):
		u.diags(diags)
	case errors.As(err, &exit) && exit.err == nil: // reported already
	case exit != nil:
		u.say("%s %v", u.bold("runexp:"), exit)
		u.hint(exit.hint)
	case errors.As(err, &bug):
		u.bug(bug.Err, nil)
	default:
		u.say("%s %v", u.bold("runexp:"), err)
	}
	return exitCode(err)
}

func (u *ui) diags(list plan.Diags) {
	for _, d := range list {
		text := d.String()
		if first, rest, ok := strings.Cut(text, "\n"); u.color && ok {
			text = u.bold(first) + "\n" + rest
		}
		u.say("%s", text)
	}
	if len(list) > 1 {
		u.say("%d problems", len(list))
	}
}

func (u *ui) bug(what any, stack []byte) {
	u.say("%s a bug in runexp, please report it with the following: %v", u.bold("runexp:"), what)
	if len(stack) > 0 {
		fmt.Fprintf(u.err, "%s\n", stack)
	}
}

func (u *ui) bold(s string) string {
	if !u.color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
)

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("a cell failed"), 1},
		{misuse("no file"), 2},
		{fmt.Errorf("wrapped: %w", plan.Diags{{Msg: "wrong"}}), 2},
		{environment(errors.New("no device")), 3},
		{&exitError{code: exitOutdated}, 5},
		{&exitError{code: exitDiffers}, 6},
		{&plan.BugError{Err: errors.New("impossible")}, 70},
		{signalError{syscall.SIGINT}, 130},
		{fmt.Errorf("wrapped: %w", signalError{syscall.SIGTERM}), 143},
		{context.Canceled, 130},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("exitCode(%v) = %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestSignals(t *testing.T) {
	ctx, stop := withSignals(t.Context(), true)
	defer stop()
	if err := stoppedBy(ctx); err != nil {
		t.Fatalf("stopped before any signal: %v", err)
	}
	send := func(s syscall.Signal) {
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGTERM)
	<-draining(ctx)
	if got := exitCode(stoppedBy(ctx)); got != 143 {
		t.Errorf("a first SIGTERM gives exit code %d, want 143", got)
	}
	if ctx.Err() != nil {
		t.Error("a first signal stops at once")
	}
	send(syscall.SIGINT)
	<-ctx.Done()
	if got := exitCode(context.Cause(ctx)); got != 130 {
		t.Errorf("a second SIGINT gives exit code %d, want 130", got)
	}
}

func TestNoColor(t *testing.T) {
	var out, errs strings.Builder
	if code := newUI(&out, &errs).start([]string{"nonsense"}); code != exitUsage || out.Len() > 0 {
		t.Errorf("code %d, stdout %q", code, &out)
	}
	if strings.Contains(errs.String(), "\x1b") {
		t.Errorf("colour without a terminal: %q", &errs)
	}
}

// Every verb's help fits a screen's width, ends with an example, and mentions its flags and no others. The
// first page mentions every verb.
func TestHelp(t *testing.T) {
	page := func(name string) string {
		var b strings.Builder
		if err := helpPages().ExecuteTemplate(&b, name, nil); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	rest := page("runexp")
	for _, v := range verbs() {
		found := false
		if _, rest, found = strings.Cut(rest, "\n  "+v.name+" "); !found {
			t.Errorf("the first page of help doesn't list %s, or not in order", v.name)
		}
		help := page(v.name)
		if !strings.HasPrefix(help, "usage: runexp "+v.name) {
			t.Errorf("%s: help doesn't begin with its usage", v.name)
		}
		if _, after, ok := strings.Cut(help, "\nexample:\n"); !ok || strings.Count(after, "\n") != 1 {
			t.Errorf("%s: help doesn't end with an example", v.name)
		}
		for line := range strings.Lines(help) {
			if len([]rune(line)) > 84 {
				t.Errorf("%s: %d letters in the line %q", v.name, len(line), line)
			}
		}
		for f := range v.flags {
			if !strings.Contains(help, "\n  "+f+" ") {
				t.Errorf("%s: help doesn't mention %s", v.name, f)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^  (--?[a-z-]+) `).FindAllStringSubmatch(help, -1) {
			if v.flags[m[1]] == nil {
				t.Errorf("%s: help mentions %s, which isn't a flag", v.name, m[1])
			}
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"run", "plan", "why", "check"}
	for name, want := range map[string]string{
		"rum": `did you mean "run"?`, "chek": `did you mean "check"?`, "pan": `did you mean "plan"?`,
		"zzzzz": "",
	} {
		if got := plan.Guess(name, known); got != want {
			t.Errorf("plan.Guess(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for arg, want := range map[string]string{
		"method=rise,ig": "method=rise,ig", "a b": "'a b'", "": "''", "it's": `'it'\''s'`,
		"maps[m=x]": "'maps[m=x]'", "$x": "'$x'",
	} {
		if got := quote(arg); got != want {
			t.Errorf("quote(%q) = %s, want %s", arg, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 123456: "123.5 kB",
		999999: "1.0 MB", 5e9: "5.0 GB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

// What doesn't drain stops at the first signal.
func TestSignalStops(t *testing.T) {
	ctx, stop := withSignals(t.Context(), false)
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if got := exitCode(context.Cause(ctx)); got != 130 {
		t.Errorf("a first SIGINT gives exit code %d, want 130", got)
	}
}

// A terminal that closes drains a run as a termination does.
func TestHangUp(t *testing.T) {
	ctx, stop := withSignals(t.Context(), true)
	defer stop()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("hang-ups are ignored here")
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-draining(ctx)
	if got := exitCode(stoppedBy(ctx)); got != 129 || ctx.Err() != nil {
		t.Errorf("a first SIGHUP gives exit code %d, want 129", got)
	}
}

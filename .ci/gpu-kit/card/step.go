package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// do runs a step and enters its lines into the table.
func (r *run) do(ctx context.Context, s step) {
	if r.table.hopeless(s.who) {
		r.table.missing(s, "nothing is computed on "+s.who)
		return
	}
	fmt.Fprintf(r.details, "\n== %s\n%s\n", s, strings.Join(s.command, " "))
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cmd := exec.CommandContext(limited, s.command[0], s.command[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Dir = r.machine.temp
	group(cmd)
	said := &tail{to: r.details}
	cmd.Stderr = said
	lines, w := io.Pipe()
	cmd.Stdout = w
	begun, done := time.Now(), make(chan bool)
	entered := 0
	go func() {
		defer close(done)
		var started time.Time
		for scan := bufio.NewScanner(lines); scan.Scan(); {
			fmt.Fprintln(r.details, scan.Text())
			if strings.HasPrefix(scan.Text(), "start ") {
				started = time.Now()
			} else if r.enter(s, scan.Text(), started) {
				entered++
			}
		}
		io.Copy(io.Discard, lines) // after a line that is too long
	}()
	err := cmd.Run()
	w.Close()
	<-done
	took := time.Since(begun).Seconds()
	why := ""
	switch {
	case ctx.Err() != nil:
		why = fmt.Sprintf("the time was over after %.0f s of it", took)
	case limited.Err() != nil:
		why = fmt.Sprintf("stopped after %.0f s, its limit", took)
	case err != nil:
		why = oneLine(fmt.Sprintf("%v: %s", err, said.last))
	case entered == 0:
		r.table.fact(s.String(), fmt.Sprintf("done in %.1f s", took))
	}
	if why != "" {
		if entered > 0 {
			why += "; the tables have what came before"
		}
		r.table.missing(s, why)
		r.say("%s: %s", s, why)
	}
}

// group makes a process the leader of a group, which is killed with it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
}

// enter enters a line into the table, and reports whether it has a result.
func (r *run) enter(s step, line string, started time.Time) bool {
	if s.fact {
		name, rest, _ := strings.Cut(line, "  ")
		rest = strings.TrimSpace(rest)
		if name == "" && r.told == s.who { // more of it: what to do, or other adapters
			r.table.facts[len(r.table.facts)-1].text += "; " + rest
			return true
		}
		if r.told = name; name == s.who || name == "runtime" || name == "runexp" || name == "cpu" {
			r.table.fact(name, rest)
			r.say("%s: %s", name, rest)
		}
		return true
	}
	verb, rest, _ := strings.Cut(line, " ")
	what, rest, _ := strings.Cut(rest, " ")
	switch verb {
	case "rate":
		f := figure{task: s.what, net: s.net, who: s.who}
		var err1, err2 error
		f.batch, err1 = strconv.Atoi(what)
		f.rate, err2 = strconv.ParseFloat(rest, 64)
		if err1 != nil || err2 != nil {
			return false
		}
		f.busy, f.memory, f.sampled = r.load.since(started)
		r.table.figures = append(r.table.figures, f)
		r.say("%s, batch %d: %.4g images/s%s", s, f.batch, f.rate, f.use())
	case "compared":
		v := verdict{who: s.who, net: s.net, stage: what}
		if _, err := fmt.Sscan(rest, &v.difference, &v.tolerance); err != nil {
			return false
		}
		r.table.enter(v)
	case "rounded":
		return r.table.rounded(s, what, rest)
	case "failed":
		if strings.Contains(what, "/") {
			r.table.enter(verdict{who: s.who, net: s.net, stage: what + s.in, failed: rest})
			break
		}
		r.table.missing(step{what: s.what + " at batch " + what, who: s.who, net: s.net}, rest)
		r.say("%s, batch %s: %s", s, what, rest)
	case "note":
		r.table.missing(s, what+" "+rest)
	default:
		return false
	}
	return true
}

// A tail passes on what is written, and keeps the last line.
type tail struct {
	to   io.Writer
	last string
}

func (t *tail) Write(b []byte) (int, error) {
	for _, line := range strings.Split(string(b), "\n") {
		if strings.TrimSpace(line) != "" {
			t.last = line
		}
	}
	return t.to.Write(b)
}

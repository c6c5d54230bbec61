package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A cell that takes longer is mentioned this often.
const heartbeat = 30 * time.Second

type lines struct {
	mu    sync.Mutex // guards everything below
	w     io.Writer
	quiet bool
	tally tally
}

func newLines(w io.Writer, now Clock, quiet bool) *lines {
	return &lines{w: w, quiet: quiet, tally: newTally(now)}
}

func (l *lines) Show(e pipeline.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	device := l.tally.where(e)
	l.tally.add(e)
	if l.quiet && !bad(e.Kind) {
		return
	}
	if text := line(&l.tally, e, device); text != "" {
		io.WriteString(l.w, text+"\n")
	}
}

func (l *lines) Close() {}

// bad reports whether an event is one that a person must not miss.
func bad(k pipeline.EventKind) bool {
	switch k {
	case pipeline.CellFailed, pipeline.CellBlocked, pipeline.Warning, pipeline.Draining:
		return true
	}
	return false
}

// line says an event in a line, or "" if it isn't worth one. device is where the
// event's cell was computed.
func line(t *tally, e pipeline.Event, device string) string {
	if !t.planned && !bad(e.Kind) && e.Kind != pipeline.CellCompiling {
		return "" // one of the cells that planning finds cached
	}
	count := fmt.Sprintf("[%d/%d] ", t.done, t.total)
	switch e.Kind {
	case pipeline.Planned:
		switch {
		case e.Total == e.Done:
			return fmt.Sprintf("%s, nothing to run", cells(e.Total))
		case e.Done == 0:
			return cells(e.Total) + " to run"
		}
		return fmt.Sprintf("%s, %d cached, %d to run", cells(e.Total), e.Done, e.Total-e.Done)
	case pipeline.CellCompiling:
		if now := t.now(); now.Sub(t.spoke) >= heartbeat {
			t.spoke = now
			return compiling(t)
		}
	case pipeline.Items:
		return beat(t, e)
	case pipeline.CellDone:
		return count + e.Cell + ": done" + took(e, device) + because(e.Reason)
	case pipeline.CellCached:
		return count + e.Cell + ": cached" + because(e.Reason)
	case pipeline.CellFailed:
		return count + e.Cell + ": failed" + took(e, device) + ": " + errText(e.Err)
	case pipeline.CellBlocked:
		return count + e.Cell + ": blocked by " + e.Reason
	case pipeline.Warning:
		if e.Cell == "" {
			return "warning: " + e.Reason
		}
		return "warning: " + e.Cell + ": " + e.Reason
	case pipeline.Draining:
		return "stopping once what runs is finished; interrupt again to stop at once"
	case pipeline.Finished:
		if t.cached == e.Total {
			return "" // the beginning said so
		}
		text := fmt.Sprintf("%d of %s done in %s", e.Done, cells(e.Total), short(e.Took))
		if n := t.cached + t.spared; n > 0 {
			text += fmt.Sprintf(", %d of them cached", n)
		}
		return text
	}
	return ""
}

// compiling says that programs are compiled, and why.
func compiling(t *tally) string {
	return fmt.Sprintf("compiling programs, to learn what changed: %d, %s", t.compile, t.last)
}

// beat says how far a cell is if nothing was said of it for a while.
func beat(t *tally, e pipeline.Event) string {
	c := t.cells[e.Cell]
	now := t.now()
	if now.Sub(c.spoke) < heartbeat {
		return ""
	}
	c.spoke = now
	t.cells[e.Cell] = c
	var b strings.Builder
	fmt.Fprintf(&b, "[%d/%d] %s: %d of %d items", t.done, t.total, e.Cell, e.Done, e.Total)
	if r := t.rate(); r > 0 {
		fmt.Fprintf(&b, ", %.3g/s", r)
	}
	if d, ok := t.left(); ok {
		fmt.Fprintf(&b, ", about %s left", short(d))
	}
	if e.Device != "" {
		b.WriteString(" on " + e.Device)
	}
	return b.String()
}

func took(e pipeline.Event, device string) string {
	text := ""
	if e.Took > 0 {
		text += " in " + short(e.Took)
	}
	if device != "" {
		text += " on " + device
	}
	return text
}

func because(reason string) string {
	if reason == "" || reason == pipeline.NothingStored {
		return ""
	}
	return " (" + reason + ")"
}

func errText(err error) string {
	if err == nil {
		return "no reason is known"
	}
	return err.Error()
}

func cells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}

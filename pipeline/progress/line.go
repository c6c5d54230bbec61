package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A cell that takes longer is mentioned this often.
const heartbeat = 30 * time.Second

// line returns the sentence for an event, or "" for an unimportant one.
func line(t *tally, e pipeline.Event) string {
	if !t.planned && !bad(e.Kind) && e.Kind != pipeline.CellCompiling {
		return "" // one of the cells that planning finds cached
	}
	cell := fmt.Sprintf("[%d/%d] %s: ", t.done, t.total, e.Cell)
	switch e.Kind {
	case pipeline.Planned:
		switch {
		case e.Total == e.Done:
			return Cells(e.Total) + ", nothing to run"
		case e.Done == 0:
			return Cells(e.Total) + " to run"
		}
		return fmt.Sprintf("%s, %d cached, %d to run", Cells(e.Total), e.Done, e.Total-e.Done)
	case pipeline.CellCompiling:
		if now := t.now(); now.Sub(t.spoke) >= heartbeat {
			t.spoke = now
			return compiling(t)
		}
	case pipeline.Items:
		return beat(t, e)
	case pipeline.CellDone:
		return cell + "done" + took(e) + because(e.Reason)
	case pipeline.CellCached:
		return cell + "cached" + because(e.Reason)
	case pipeline.CellFailed:
		return cell + "failed" + took(e) + ": " + e.Err.Error()
	case pipeline.CellBlocked:
		return cell + "blocked by " + e.Reason
	case pipeline.Warning:
		if e.Cell == "" {
			return "warning: " + e.Reason
		}
		return "warning: " + e.Cell + ": " + e.Reason
	case pipeline.Draining:
		return "stopping once the running cells are finished; interrupt again to stop at once"
	case pipeline.Finished:
		if t.cached == e.Total {
			return "" // the first line reported it
		}
		text := fmt.Sprintf("%d of %s done in %s", e.Done, Cells(e.Total), short(e.Took))
		if n := t.cached + t.spared; n > 0 {
			text += fmt.Sprintf(", %d of them cached", n)
		}
		return text
	}
	return ""
}

// compiling describes how many programs were compiled, and why.
func compiling(t *tally) string {
	return fmt.Sprintf("compiling programs, to find what changed: %d, %s", t.compile, t.last)
}

// beat describes the progress of a cell, unless a line about it was written within the last heartbeat.
func beat(t *tally, e pipeline.Event) string {
	c, now := t.cells[e.Cell], t.now()
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

func took(e pipeline.Event) string {
	text := ""
	if e.Took > 0 {
		text += " in " + short(e.Took)
	}
	if e.Device != "" {
		text += " on " + e.Device
	}
	return text
}

func because(reason string) string {
	if reason == "" || reason == pipeline.NothingStored {
		return ""
	}
	return " (" + reason + ")"
}

// Cells writes a number of cells.
func Cells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}

// short writes a duration with two significant figures.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

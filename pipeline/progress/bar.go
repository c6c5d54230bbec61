package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/runexp/runexp/pipeline"
)

// steps is the resolution of the bar, finer than cells so that a long cell moves it.
const steps = 10_000

// The bar isn't drawn more often than this.
const redraw = 100 * time.Millisecond

type bar struct {
	mu    sync.Mutex // guards everything below
	w     io.Writer
	tally tally
	bar   *progressbar.ProgressBar // nil before there's something to run, and when closed
	width func() int
	drawn time.Time
}

// Bar returns a display for a terminal: one bar for the whole run, with the
// cells that are finished, items a second, time left and device. What stays is
// written above it: failures, warnings, the end. width returns how many letters
// fit in a line of the terminal.
func Bar(w io.Writer, width func() int, now Clock) Display {
	return &bar{w: w, tally: newTally(now), width: width}
}

func (b *bar) Show(e pipeline.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	device := b.tally.where(e)
	b.tally.add(e)
	switch {
	case e.Kind == pipeline.Planned && e.Total == e.Done:
		b.close()
	case e.Kind == pipeline.Planned || e.Kind == pipeline.CellCompiling && b.bar == nil:
		b.close()
		b.bar = progressbar.NewOptions(steps,
			progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetWidth(20),
			progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetRenderBlankState(true),
		)
	case e.Kind == pipeline.Finished:
		b.close()
		if text := line(&b.tally, e, device); text != "" {
			fmt.Fprintln(b.w, text)
		}
	case bad(e.Kind):
		if b.bar != nil {
			b.bar.Clear()
		}
		fmt.Fprintln(b.w, line(&b.tally, e, device))
		b.drawn = time.Time{}
	}
	b.draw()
}

func (b *bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close()
}

func (b *bar) close() {
	if b.bar != nil {
		b.bar.Clear()
		b.bar = nil
	}
}

func (b *bar) draw() {
	now := b.tally.now()
	if b.bar == nil || now.Sub(b.drawn) < redraw {
		return
	}
	b.drawn = now
	// Percent, borders and blanks of the bar take about 32 letters.
	b.bar.Describe(cut(status(&b.tally), b.width()-32))
	// A full bar would be taken for a finished one.
	b.bar.Set(min(int(b.tally.share()*steps), steps-1))
}

// status says how far the run is, what matters most first.
func status(t *tally) string {
	if !t.planned {
		return compiling(t)
	}
	parts := []string{fmt.Sprintf("%d/%d cells", t.done, t.total)}
	if r := t.rate(); r > 0 {
		parts = append(parts, fmt.Sprintf("%.3g items/s", r))
	}
	if d, ok := t.left(); ok {
		parts = append(parts, short(d)+" left")
	}
	if t.device != "" {
		parts = append(parts, t.device)
	}
	if t.last != "" {
		parts = append(parts, t.last)
	}
	return strings.Join(parts, ", ")
}

// cut shortens text to n letters.
func cut(text string, n int) string {
	letters := []rune(text)
	if len(letters) <= n {
		return text
	}
	if n < 1 {
		return ""
	}
	return string(letters[:n-1]) + "…"
}

package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/runexp/runexp/pipeline"
)

const (
	steps  = 10_000                 // resolution of the bar; finer than cells, so that a long cell moves it
	redraw = 100 * time.Millisecond // the bar isn't drawn more often
	frame  = 32                     // letters of a line that percent, borders and blanks of the bar take
)

// A bar is the bottom line of a terminal. All methods of a nil bar do nothing.
type bar struct {
	w     io.Writer
	width func() int
	bar   *progressbar.ProgressBar // nil while nothing runs
	drawn time.Time
	share int // in steps; a later estimate of the end doesn't move the bar back
}

// show draws the bar after an event that t has counted.
func (b *bar) show(t *tally, k pipeline.EventKind) {
	if b == nil {
		return
	}
	switch {
	case k == pipeline.Planned && t.total == t.done:
		b.close()
	case k == pipeline.Planned, k == pipeline.CellCompiling && b.bar == nil:
		b.close()
		b.bar = progressbar.NewOptions(steps, progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetWidth(20), progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetRenderBlankState(true))
	}
	if now := t.now(); b.bar != nil && now.Sub(b.drawn) >= redraw {
		b.drawn = now
		b.bar.Describe(cut(status(t), b.width()-frame))
		// A full bar would look finished.
		b.share = max(b.share, min(int(t.share()*steps), steps-1))
		b.bar.Set(b.share)
	}
}

// clear removes the bar before a line is written; the next event draws it again.
func (b *bar) clear() {
	if b != nil && b.bar != nil {
		b.bar.Clear()
		b.drawn = time.Time{}
	}
}

func (b *bar) close() {
	if b != nil {
		b.clear()
		b.bar = nil
	}
}

// status describes the progress of the run, the most important part first.
func status(t *tally) string {
	if !t.planned {
		return compiling(t)
	}
	parts := []string{fmt.Sprintf("%d/%d cells", t.done, t.total)}
	if n := t.cached + t.spared; n > 0 {
		parts[0] += fmt.Sprintf(" (%d cached)", n)
	}
	if r := t.rate(); r > 0 {
		parts = append(parts, fmt.Sprintf("%.3g items/s", r))
	}
	if d, ok := t.left(); ok {
		parts = append(parts, short(d)+" left")
	}
	for _, s := range []string{t.device, t.last} {
		if s != "" {
			parts = append(parts, s)
		}
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

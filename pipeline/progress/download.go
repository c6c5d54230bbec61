package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Download shows the progress of files that are fetched one after the other: as a bar on a terminal,
// otherwise as a line for each file, and one every half minute for a file that takes longer.
type Download struct {
	w     io.Writer
	width func() int // of the terminal, nil for lines
	now   Clock

	name  string // of the current file
	bar   *progressbar.ProgressBar
	spoke time.Time
}

// Downloads returns a display of downloads. width returns how many letters fit in a line of the terminal;
// it is nil without a terminal.
func Downloads(w io.Writer, width func() int, now Clock) *Download {
	return &Download{w: w, width: width, now: now}
}

// Show shows how many bytes of a file have arrived, of total, which is -1 if unknown.
func (d *Download) Show(name string, done, total int64) {
	begins := name != d.name
	if d.name = name; d.width == nil {
		switch now := d.now(); {
		case begins && total >= 0:
			fmt.Fprintf(d.w, "fetching %s, %s\n", name, megabytes(total))
			d.spoke = now
		case begins:
			fmt.Fprintf(d.w, "fetching %s\n", name)
			d.spoke = now
		case now.Sub(d.spoke) >= heartbeat:
			fmt.Fprintf(d.w, "fetching %s: %s\n", name, megabytes(done))
			d.spoke = now
		}
		return
	}
	if begins {
		d.Close()
		d.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(d.w),
			progressbar.OptionSetDescription(cut(name, d.width()/2)), progressbar.OptionSetWidth(20),
			progressbar.OptionShowBytes(true), progressbar.OptionThrottle(redraw),
			progressbar.OptionSetRenderBlankState(true))
	}
	d.bar.Set64(done)
}

// Say writes a line between the lines of Show.
func (d *Download) Say(line string) {
	if d.bar != nil {
		d.bar.Clear()
	}
	fmt.Fprintln(d.w, line)
}

// Close removes the bar.
func (d *Download) Close() {
	if d.bar != nil {
		d.bar.Clear()
		d.bar = nil
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

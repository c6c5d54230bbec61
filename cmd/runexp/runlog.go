package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/resolve"
)

// A runLog keeps the events of a run that executes something. It also holds the facts that must not be in a
// review folder: when, where and how the command was called. If it can't be written, the run goes on.
type runLog struct {
	place   place
	plan    *plan.Plan
	share   *resolve.Share // nil in a run of all
	planned pipeline.Event
	failed  string // the first failed cell, and its error

	// All are nil until the first cell starts.
	file    *os.File
	buffer  *bufio.Writer
	display progress.Display
}

func (l *runLog) show(e pipeline.Event) {
	switch {
	case e.Kind == pipeline.Planned:
		l.planned = e
	case e.Kind == pipeline.CellStarted && l.file == nil:
		l.begin()
	case e.Kind == pipeline.CellFailed && l.failed == "":
		l.failed = fmt.Sprintf("%s: %v", e.Cell, e.Err)
	}
	if l.file == nil {
		return
	}
	l.display.Show(e)
	if e.Kind == pipeline.CellFailed || e.Kind == pipeline.Warning {
		l.buffer.Flush() // people look for it if the process dies
	}
}

func (l *runLog) begin() {
	now, dir := time.Now(), l.place.runs()
	if l.place.real(dir) != nil || os.MkdirAll(dir, 0o777) != nil {
		return
	}
	name := fmt.Sprintf("%s-%d", now.UTC().Format("20060102T150405.000"), os.Getpid())
	if l.share != nil { // which many machines may begin at once
		name += fmt.Sprintf("-%dof%d", l.share.K, l.share.Of)
	}
	f, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return
	}
	l.file, l.buffer = f, bufio.NewWriter(f)
	l.display = progress.JSON(l.buffer)
	host, _ := os.Hostname()
	record := map[string]any{
		"event": "run", "experiment": l.plan.Name, "file": l.plan.File, "args": os.Args[1:],
		"began": now.Format(time.RFC3339), "host": host, "build": build(),
	}
	whereRan(record, l.share)
	_ = json.NewEncoder(l.buffer).Encode(record)
	l.display.Show(l.planned)
	if l.share != nil {
		l.buffer.Flush() // so that a share that is lost is known to have begun
	}
}

func (l *runLog) close() {
	if l.file != nil {
		l.buffer.Flush()
		l.file.Close()
	}
}

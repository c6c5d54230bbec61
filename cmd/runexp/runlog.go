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
)

// A runLog keeps the events of a run that executes something, with what mustn't
// stand in a review folder: when, where and how the command was called.
type runLog struct {
	place   place
	plan    *plan.Plan
	file    *os.File
	buffer  *bufio.Writer
	display progress.Display
	planned pipeline.Event
}

func newRunLog(p place, plan *plan.Plan) *runLog { return &runLog{place: p, plan: plan} }

// show takes an event. The log is made when the first cell starts; that it can't
// be written is no reason to stop a run.
func (l *runLog) show(e pipeline.Event) {
	switch e.Kind {
	case pipeline.Planned:
		l.planned = e
	case pipeline.CellStarted:
		if l.display == nil {
			l.begin()
		}
	}
	if l.display == nil {
		return
	}
	l.display.Show(e)
	if e.Kind == pipeline.CellFailed || e.Kind == pipeline.Warning {
		l.buffer.Flush() // what people look for if the process dies
	}
}

func (l *runLog) begin() {
	now := time.Now()
	host, _ := os.Hostname()
	if l.place.real(l.place.runs()) != nil || os.MkdirAll(l.place.runs(), 0o777) != nil {
		return
	}
	name := fmt.Sprintf("%s-%d.jsonl", now.UTC().Format("20060102T150405.000"), os.Getpid())
	f, err := os.OpenFile(filepath.Join(l.place.runs(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return
	}
	l.file, l.buffer = f, bufio.NewWriter(f)
	l.display = progress.JSON(l.buffer)
	_ = json.NewEncoder(l.buffer).Encode(map[string]any{
		"event": "run", "experiment": l.plan.Name, "file": l.plan.File, "args": os.Args[1:],
		"began": now.Format(time.RFC3339), "host": host, "build": build(),
	})
	l.display.Show(l.planned)
}

func (l *runLog) close() {
	if l.file != nil {
		l.buffer.Flush()
		l.file.Close()
	}
}

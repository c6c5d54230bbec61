package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
)

// A reporter takes what check finds, file by file.
type reporter interface {
	errors(plan.Diags)
	warnings(plan.Diags)
	remark(sentence string) // a warning that has no place
	good(*plan.Plan)
	end() error // the first error of writing
}

// A plainReport is for people. Errors come last, so that they are what is seen.
type plainReport struct {
	*ui
	all plan.Diags
	err error
}

func (r *plainReport) errors(list plan.Diags) { r.all = append(r.all, list...) }
func (r *plainReport) remark(sentence string) { r.warn(sentence) }

func (r *plainReport) good(p *plan.Plan) {
	_, err := fmt.Fprintf(r.out, "%s: %s in %d stages\n", p.File, cells(len(p.Cells)), declared(p))
	r.err = cmp.Or(r.err, err)
}

func (r *plainReport) end() error {
	r.diags(r.all)
	return r.err
}

// A jsonReport is for editors and other programs: a line of JSON for everything.
type jsonReport struct {
	w   *json.Encoder
	err error
}

// A finding is one line of it. Fields that mean nothing for an event are left out.
type finding struct {
	Event   string `json:"event"` // error, warning or checked
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Cells   int    `json:"cells,omitempty"`
	Stages  int    `json:"stages,omitempty"`
}

func (r *jsonReport) errors(list plan.Diags)   { r.each("error", list) }
func (r *jsonReport) warnings(list plan.Diags) { r.each("warning", list) }
func (r *jsonReport) remark(sentence string)   { r.put(finding{Event: "warning", Message: sentence}) }
func (r *jsonReport) end() error               { return r.err }

func (r *jsonReport) good(p *plan.Plan) {
	r.put(finding{Event: "checked", File: p.File, Cells: len(p.Cells), Stages: declared(p)})
}

func (r *jsonReport) each(event string, list plan.Diags) {
	for _, d := range list {
		r.put(finding{Event: event, File: d.File, Line: d.Line, Column: d.Col, Path: d.Path, Message: d.Msg, Hint: d.Hint})
	}
}

func (r *jsonReport) put(f finding) { r.err = cmp.Or(r.err, r.w.Encode(f)) }

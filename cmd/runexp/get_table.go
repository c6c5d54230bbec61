package main

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// tableForms writes a table in the formats of --as.
var tableForms = map[string]func(stages.Table) string{
	"csv": tableCSV,
	"md":  typeset.Markdown,
	"tex": typeset.LaTeX,
}

// A printedTable holds the flags by which get prints a table.
type printedTable struct{ as, port, rows, columns, values string }

func (f flags) printedTable() *printedTable {
	p := &printedTable{}
	f["--as"], f["--port"] = &p.as, &p.port
	f["--rows"], f["--columns"], f["--values"] = &p.rows, &p.columns, &p.values
	return p
}

// misused returns an error if the flags contradict each other or -o.
func (p *printedTable) misused(out string) error {
	switch {
	case out == "" && p.as == "":
		return misuse("get needs a folder, -o DIR, or for a table --as csv, md or tex")
	case out != "" && p.as != "":
		return misuse("--as prints one table, and -o writes all outputs: give one of them")
	case p.as != "" && tableForms[p.as] == nil:
		return misuse("--as is csv, md or tex, not %q", p.as)
	case p.as == "" && cmp.Or(p.port, p.rows, p.columns, p.values) != "":
		return misuse("--port, --rows, --columns and --values come with --as")
	}
	return nil
}

// portOf returns the index of the table's port among a stage's outputs: by default the first table.
func (p *printedTable) portOf(cell *plan.Cell) (int, error) {
	var tables []string
	for i := range cell.Stage.Outputs {
		port := &cell.Stage.Outputs[i]
		if port.Type.Form != stages.FormTable {
			continue
		}
		if p.port == "" || p.port == port.Name {
			return i, nil
		}
		tables = append(tables, port.Name)
	}
	if tables == nil {
		return 0, misuse("%s has no table: write its outputs with -o DIR", cell.String())
	}
	return 0, misuse("%s has no table %q; it has %s", cell.String(), p.port, strings.Join(tables, ", "))
}

// print writes the table in an output of a cell to w; in formats for people labels replace ids.
func (p *printedTable) print(w io.Writer, d stages.Data, labels stages.Names) error {
	b, err := d.Load(0)
	if err != nil {
		return err
	}
	t, err := stages.DecodeTable(b)
	if err != nil {
		return err
	}
	for _, r := range t.Rows {
		for i, key := range t.Keys {
			if label, ok := labels[key][r.Keys[i]]; ok && p.as != "csv" {
				r.Keys[i] = label
			}
		}
	}
	names := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
	}
	if t, err = typeset.Pivot(t, names(p.rows), names(p.columns), names(p.values)); err != nil {
		return misuse("%v", err)
	}
	_, err = io.WriteString(w, tableForms[p.as](t))
	return err
}

// tableCSV writes a table with all digits, like an exported one.
func tableCSV(t stages.Table) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	head := slices.Clone(t.Keys)
	for _, n := range t.Numbers {
		head = append(head, n.Name)
	}
	w.Write(head)
	for _, r := range t.Rows {
		var fields []string
		for _, key := range r.Keys {
			fields = append(fields, typeset.Field(key))
		}
		for _, n := range r.Numbers {
			fields = append(fields, numeral(float64(n)))
		}
		w.Write(fields)
	}
	w.Flush() // writing to a strings.Builder can't fail
	return b.String()
}

package results

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// Of collects the publishable results of a run: the scores of every stage, and the tables, figures and
// texts of the published stages. command is the command by which a reader reproduces the run.
func Of(ctx context.Context, r *pipeline.Result, command string) (*publish.Results, error) {
	p := r.Plan
	v := &publish.Results{
		Name: p.Name, Title: p.Title, Experiment: p.Resolved(), Command: command,
		Narrowed: p.Narrowed, Order: p.Order, Labels: p.Labels,
	}
	for _, d := range p.Remarks() {
		v.Remarks = append(v.Remarks, d.Msg)
	}
	for _, s := range p.Publish {
		v.Publish = append(v.Publish, s.Name)
	}
	lines, precisions := newLines(p), plan.Precisions{}
	for _, c := range p.Cells {
		if c.Step.Implied || makesThumbnails(c.Step) && r.State(c).OK() {
			continue
		}
		cell, err := cellOf(ctx, r, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		namePrecision(&cell, precisions.Words(c))
		lines.add(c, cell)
	}
	v.Cells = lines.list()
	return v, nil
}

// cellOf collects the publishable results of a cell.
func cellOf(ctx context.Context, r *pipeline.Result, c *plan.Cell) (publish.Cell, error) {
	out := publish.Cell{Name: c.String(), Stage: c.Step.Name, Coord: c.Coord, N: -1, Params: r.Params(c)}
	switch state := r.State(c); {
	case state == schedule.Failed:
		out.State = publish.Failed
		return out, nil
	case !state.OK():
		out.State = publish.Blocked
		return out, nil
	}
	var err error
	if out.Definition, err = r.Definition(c); err != nil {
		return out, err
	}
	stored := r.Stored(c)
	out.MadeBy = stored.MadeBy()
	types := []string{stages.Scores.Name}
	if slices.Contains(r.Plan.Publish, c.Step) {
		types = append(types, stages.TableType.Name, stages.Claims.Name, stages.Figure.Name, stages.Text.Name)
	}
	defer r.Forget(c) // every cell is read once
	for i, port := range c.Stage.Outputs {
		if port.Type.Items && out.N < 0 {
			_, out.N, _ = stored.Output(i)
		}
		if slices.Contains(types, port.Type.Name) {
			if err := addOutput(ctx, &out, r, c, i); err != nil {
				return out, fmt.Errorf("port %q: %w", port.Name, err)
			}
		}
	}
	present(&out, c.Stage.HooksOf(c.Params).Present)
	nameMarks(&out, c)
	return out, nil
}

// present replaces the texts of a cell by what people read.
func present(c *publish.Cell, by func(text string, tables map[string]stages.Table) string) {
	if by == nil {
		return
	}
	tables := map[string]stages.Table{}
	for _, t := range c.Tables {
		tables[t.Port] = t.Table
	}
	for i := range c.Texts {
		t := &c.Texts[i]
		if text := by(t.Markdown, tables); text != t.Markdown {
			t.Markdown, t.Stored = text, t.Markdown
		}
	}
}

// namePrecision adds to titles and captions in which precision the results were computed; "" is float32.
func namePrecision(to *publish.Cell, precision string) {
	if precision == "" {
		return
	}
	for i := range to.Tables {
		to.Tables[i].Table.Title += ", " + precision
	}
	for i := range to.Figures {
		f := &to.Figures[i]
		f.Caption = strings.TrimSpace(f.Caption + " " + strings.ToUpper(precision[:1]) + precision[1:] + ".")
	}
}

// nameMarks adds to the meaning of a table's marks by which tests they are: those of the cell, or of the
// cells that it reads.
func nameMarks(to *publish.Cell, c *plan.Cell) {
	by := c.Stage.HooksOf(c.Params).Marks
	for _, in := range c.Inputs {
		for _, e := range in.Edges {
			if by == "" {
				by = e.From.Stage.HooksOf(e.From.Params).Marks
			}
		}
	}
	for _, t := range to.Tables {
		for i := range t.Table.Numbers {
			if n := &t.Table.Numbers[i]; n.Marks != "" && by != "" {
				n.Unit += ", by " + by
			}
		}
	}
}

// addOutput adds the data of c's output port.
func addOutput(ctx context.Context, to *publish.Cell, r *pipeline.Result, c *plan.Cell, i int) error {
	d, err := r.Data(ctx, c, i)
	if err != nil {
		return err
	}
	port := c.Stage.Outputs[i]
	if port.Type.Name == stages.Scores.Name {
		ids, err := r.IDs(c, i)
		if err != nil {
			return err
		}
		return addScores(to, port.Name, ids, d)
	}
	if d.Facts["unpublished"] != "" {
		return nil
	}
	b, err := d.Load(0)
	if err != nil {
		return err
	}
	switch port.Type.Name {
	case stages.TableType.Name, stages.Claims.Name:
		t, err := stages.DecodeTable(b)
		if err != nil {
			return err
		}
		if len(t.Numbers) > 0 { // else there is nothing to show
			to.Tables = append(to.Tables, publish.Table{Port: port.Name, Table: t})
		}
	case stages.Figure.Name:
		f := publish.Figure{Port: port.Name, Ext: d.Facts["ext"], Caption: d.Facts["caption"], Data: b}
		to.Figures = append(to.Figures, f)
		if list := d.Facts["shown"]; json.Valid([]byte(list)) {
			to.Shown = []byte(list)
		}
	case stages.Text.Name:
		if len(b) > 0 {
			to.Texts = append(to.Texts, publish.Text{Port: port.Name, Markdown: string(b)})
		}
	}
	return nil
}

// addScores adds the scores of a port's items. The cell's definition then covers the items' ids too: the
// score of a renamed image must not be compared with the score of whatever had that name before.
func addScores(to *publish.Cell, port string, ids []string, d stages.Data) error {
	values := make([]float64, len(ids))
	for i := range ids {
		b, err := d.Load(i)
		if err != nil {
			return err
		}
		if values[i], err = stages.ScalarOf(b); err != nil {
			return err
		}
	}
	to.Definition = key.Of("named", []stages.Digest{to.Definition}, ids)
	to.Items = d.Facts[stages.ItemsFact]
	to.Scores = append(to.Scores, publish.Score{Port: port, Measure: stages.MeasureOf(d.Facts),
		Items: publish.Items{IDs: ids, Values: values}})
	return nil
}

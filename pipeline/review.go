package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// Publish updates the review folder dir to r. command is how a reader reproduces it. done is true when the
// folder was known to be up to date, and nothing was compared.
func (r *Result) Publish(
	ctx context.Context, dir, command string, o publish.Options,
) (v publish.Verdict, done bool, err error) {
	key, err := r.publishKey(dir, command)
	if err != nil {
		return v, false, err
	}
	var known struct { // of a folder that is up to date
		Answer string
		Files  []publish.File
	}
	files, _ := publish.Files(dir) // Write returns the error
	if b, ok := r.run.store.Memo(key); ok && json.Unmarshal(b, &known) == nil && len(known.Files) > 0 &&
		slices.Equal(known.Files, files) {
		return publish.Verdict{Answer: known.Answer}, true, nil
	}
	review, err := r.Review(ctx, command)
	if err != nil {
		return v, false, err
	}
	if v, err = publish.Write(dir, review, o); err != nil {
		return v, false, err
	}
	if err := r.rememberPictures(dir); err != nil {
		return v, false, err
	}
	if !v.OK() || r.Summary.Failed+r.Summary.Blocked > 0 {
		return v, false, nil
	}
	known.Answer = v.Answer
	if known.Files, err = publish.Files(dir); err != nil {
		return v, false, err
	}
	b, err := json.Marshal(known)
	if err != nil {
		return v, false, err
	}
	return v, false, r.run.store.SetMemo(key, b)
}

// Verify compares the review folder dir with r and writes nothing.
func (r *Result) Verify(ctx context.Context, dir string) (publish.Verdict, error) {
	review, err := r.Review(ctx, "")
	if err != nil {
		return publish.Verdict{}, err
	}
	return publish.Verify(dir, review)
}

// Review gathers what r has to publish: the scores of every stage, and the tables, figures and texts of the
// published ones.
func (r *Result) Review(ctx context.Context, command string) (*publish.Review, error) {
	p := r.Plan
	v := &publish.Review{
		Name: p.Name, Title: p.Title, Experiment: p.Resolved(), Command: command,
		Narrowed: p.Narrowed, Order: p.Order, Labels: p.Labels,
	}
	for _, d := range p.Remarks() {
		v.Remarks = append(v.Remarks, d.Msg)
	}
	for _, s := range p.Publish {
		v.Publish = append(v.Publish, s.Name)
	}
	told := toldApart(p)
	folds := map[string]*fold{} // by name
	for _, c := range p.Cells {
		if c.Step.Implied || makesThumbnails(c.Step) && r.run.nodes[c.Index].hasResults() {
			continue
		}
		cell, err := r.reviewCell(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		coord := slices.DeleteFunc(slices.Clone(c.Coord), func(at stages.Coord) bool {
			return !told[c.Step][at.Axis]
		})
		if cell.State == publish.Done && len(coord) < len(c.Coord) {
			name := (&plan.Cell{Step: c.Step, Coord: coord}).String()
			if f := folds[name]; f != nil {
				f.add(&v.Cells[f.at], &cell)
				continue
			}
			folds[name] = &fold{len(v.Cells), []stages.Digest{cell.Definition}}
			cell.Name, cell.Coord, cell.Cells, cell.Scores = name, coord, 1, nil
		}
		v.Cells = append(v.Cells, cell)
	}
	for _, f := range folds {
		v.Cells[f.at].Definition = f.definition()
	}
	return v, nil
}

// toldApart returns, by step, the axes along which a review lists its cells one by one: all those of a step
// that is published or that nothing reads; and of others those that a reader lists its cells along or, being
// published, collapses.
func toldApart(p *plan.Plan) map[*plan.Step]map[string]bool {
	told, read := map[*plan.Step]map[string]bool{}, map[*plan.Step]bool{}
	for _, s := range p.Steps {
		told[s] = map[string]bool{}
	}
	for _, c := range slices.Backward(p.Cells) {
		if makesThumbnails(c.Step) {
			continue
		}
		published := slices.Contains(p.Publish, c.Step)
		for _, at := range c.Coord {
			told[c.Step][at.Axis] = told[c.Step][at.Axis] || published || !read[c.Step]
		}
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				read[e.From.Step] = true
				for _, at := range e.Coord {
					told[e.From.Step][at.Axis] = told[e.From.Step][at.Axis] || published
				}
				for axis, apart := range told[c.Step] {
					told[e.From.Step][axis] = told[e.From.Step][axis] || apart
				}
			}
		}
	}
	return told
}

// A fold is the cells that one line of a review stands for: those that differ along axes that are collapsed
// before anything is published.
type fold struct {
	at   int // of the first, in the review
	defs []stages.Digest
}

// add adds a cell to the line of others. What they don't have in common isn't listed.
func (f *fold) add(line, c *publish.Cell) {
	line.Cells++
	f.defs = append(f.defs, c.Definition)
	if c.MadeBy != line.MadeBy {
		line.MadeBy = ""
	}
	var of, other map[string]json.RawMessage
	if json.Unmarshal(line.Params, &of) == nil && json.Unmarshal(c.Params, &other) == nil {
		maps.DeleteFunc(of, func(name string, v json.RawMessage) bool { return !bytes.Equal(v, other[name]) })
		line.Params, _ = json.Marshal(of)
	}
}

// definition digests those of the cells, in whatever order the experiment lists them.
func (f *fold) definition() stages.Digest {
	slices.SortFunc(f.defs, func(a, b stages.Digest) int { return bytes.Compare(a[:], b[:]) })
	h := newHasher("folded")
	for _, d := range f.defs {
		h.digest(d)
	}
	return h.sum()
}

func (r *Result) reviewCell(ctx context.Context, c *plan.Cell) (publish.Cell, error) {
	n := r.run.nodes[c.Index]
	out := publish.Cell{
		Name: c.String(), Stage: c.Step.Name, Coord: c.Coord, N: -1,
		Params: r.run.params.encode(nil, n.Stage, c.Params),
	}
	switch {
	case r.run.state(n) == schedule.Failed:
		out.State = publish.Failed
		return out, nil
	case !n.hasResults():
		out.State = publish.Blocked
		return out, nil
	}
	var err error
	if out.Definition, err = r.run.definition(n); err != nil {
		return out, err
	}
	out.MadeBy = n.stored().MadeBy()
	reviewed := []string{stages.Scores.Name}
	if slices.Contains(r.Plan.Publish, c.Step) {
		reviewed = append(reviewed, stages.TableType.Name, stages.Claims.Name, stages.Figure.Name,
			stages.Text.Name)
	}
	defer n.forget() // a review reads every cell once
	for i, port := range c.Stage.Outputs {
		if port.Type.Items && out.N < 0 {
			_, out.N, _ = n.stored().Output(i)
		}
		if slices.Contains(reviewed, port.Type.Name) {
			d, err := r.Data(ctx, c, i)
			if err == nil {
				err = addOutput(&out, port, d)
			}
			if err != nil {
				return out, fmt.Errorf("port %q: %w", port.Name, err)
			}
		}
	}
	return out, nil
}

// addScores adds scores to the cell that is published. Its definition is then that of what is published under
// the names of the items, so that a renamed image is no other claim about the old one.
func addScores(c *publish.Cell, port string, d stages.Data) error {
	ids := d.Items.(*portItems).ids.ids
	values := make([]float64, len(ids))
	h := newHasher("named")
	h.digest(c.Definition)
	for i, id := range ids {
		h.text(id)
		b, err := d.Load(i)
		if err != nil {
			return err
		}
		if values[i], err = stages.ScalarOf(b); err != nil {
			return err
		}
	}
	c.Definition = h.sum()
	items := publish.Items{IDs: ids, Values: values}
	c.Scores = append(c.Scores, publish.Score{Port: port, Measure: stages.MeasureOf(d.Facts), Items: items})
	return nil
}

// addOutput adds what a port holds to the cell that is published.
func addOutput(c *publish.Cell, port stages.Port, d stages.Data) error {
	if port.Type.Name == stages.Scores.Name {
		return addScores(c, port.Name, d)
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
			c.Tables = append(c.Tables, publish.Table{Port: port.Name, Table: t})
		}
	case stages.Figure.Name:
		f := publish.Figure{Port: port.Name, Ext: d.Facts["ext"], Caption: d.Facts["caption"], Data: b}
		c.Figures = append(c.Figures, f)
		if list := d.Facts["shown"]; json.Valid([]byte(list)) {
			c.Shown = []byte(list)
		}
	case stages.Text.Name:
		if len(b) > 0 {
			c.Texts = append(c.Texts, publish.Text{Port: port.Name, Markdown: string(b)})
		}
	}
	return nil
}

package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc"
)

// Publish brings the review folder dir up to date with r. command is how a reader
// reproduces it. done is true when the folder was known to be up to date, and nothing was compared.
func (r *Result) Publish(ctx context.Context, dir, command string, o publish.Options) (v publish.Verdict, done bool, err error) {
	var reading conc.WaitGroup
	var before []byte
	reading.Go(func() { before = r.folderBefore(dir) })
	key, err := r.publishKey(dir, command)
	reading.Wait()
	if err != nil {
		return v, false, err
	}
	store := r.run.store
	if b, ok := store.Memo(key); ok && before != nil && string(b) == string(before) {
		return v, true, nil
	}
	review, err := r.Review(ctx, command)
	if err != nil {
		return v, false, err
	}
	if v, err = publish.Write(dir, review, o); err != nil {
		return v, false, err
	}
	if len(v.Differs) > 0 || r.Summary.Failed+r.Summary.Blocked > 0 {
		return v, false, nil
	}
	b, err := r.folderState(dir)
	if err != nil {
		return v, false, err
	}
	return v, false, store.SetMemo(key, b)
}

// Verify compares the review folder dir with r and writes nothing.
func (r *Result) Verify(ctx context.Context, dir string) (publish.Verdict, error) {
	review, err := r.Review(ctx, "")
	if err != nil {
		return publish.Verdict{}, err
	}
	return publish.Verify(dir, review)
}

// publishKey names everything that decides what a review folder holds; another build may
// write it otherwise.
func (r *Result) publishKey(dir, command string) (stages.Digest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return stages.Digest{}, err
	}
	h := newHasher("publish")
	h.text(r.run.compiler())
	h.text(dir)
	h.text(command)
	h.text(string(r.run.resolved()))
	for _, n := range r.run.nodes {
		h.num(boolInt(n.state.ok()))
		h.digest(n.key)
		h.num(n.sources.len())
		n.sourceNames(h)
	}
	return h.sum(), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// folderState lists a review folder's files with their digests.
func (r *Result) folderState(dir string) ([]byte, error) {
	files, err := publish.Files(dir)
	if err != nil {
		return nil, err
	}
	return json.Marshal(files)
}

// folderBefore is folderState, and nil for a folder that isn't there or can't be read.
func (r *Result) folderBefore(dir string) []byte {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	b, err := r.folderState(dir)
	if err != nil {
		return nil
	}
	return b
}

// Review gathers what r has to publish: the scores of every stage, and the
// tables, figures and texts of the published ones.
func (r *Result) Review(ctx context.Context, command string) (*publish.Review, error) {
	p := r.Plan
	v := &publish.Review{
		Name: p.Name, Title: p.Title, Experiment: p.Resolved(), Command: command, Narrowed: p.Narrowed, Order: p.Order,
	}
	for _, s := range p.Publish {
		v.Publish = append(v.Publish, s.Name)
	}
	for _, c := range p.Cells {
		if c.Step.Implied {
			continue
		}
		cell, err := r.reviewCell(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		v.Cells = append(v.Cells, cell)
	}
	return v, nil
}

func (r *Result) reviewCell(ctx context.Context, c *plan.Cell) (publish.Cell, error) {
	n := r.run.nodes[c.Index]
	out := publish.Cell{
		Name: c.String(), Stage: c.Step.Name, Coord: c.Coord, N: -1,
		Params: r.run.params.encode(nil, c.Params),
	}
	switch {
	case n.state == failed:
		out.State = publish.Failed
	case !n.state.ok():
		out.State = publish.Blocked
	}
	if out.State != publish.Done {
		return out, nil
	}
	var err error
	if out.Definition, err = r.run.definition(n); err != nil {
		return out, err
	}
	out.MadeBy = n.stored().MadeBy()
	published := slices.Contains(r.Plan.Publish, c.Step)
	defer n.forget() // a review reads every cell once
	for port := range c.Stage.Outputs {
		t := c.Stage.Outputs[port].Type
		if t.Items && out.N < 0 {
			_, out.N, _ = n.stored().Output(port)
		}
		switch t.Name {
		case stages.Scores.Name:
		case stages.TableType.Name, stages.Figure.Name, stages.Text.Name:
			if !published {
				continue
			}
		default:
			continue
		}
		d, err := r.Data(ctx, c, port)
		if err != nil {
			return out, err
		}
		if t.Items {
			if out.Definition, err = named(out.Definition, d.Items); err != nil {
				return out, err
			}
		}
		if err := addOutput(&out, &c.Stage.Outputs[port], d); err != nil {
			return out, fmt.Errorf("port %q: %w", c.Stage.Outputs[port].Name, err)
		}
	}
	return out, nil
}

// named returns the definition of what is published under the names of items: the
// cell's, with the names, so that a renamed image is no other claim about the old one.
func named(definition stages.Digest, items stages.Items) (stages.Digest, error) {
	h := newHasher("named")
	h.digest(definition)
	for i := range items.Len() {
		item, err := items.At(i)
		if err != nil {
			return stages.Digest{}, err
		}
		h.text(item.ID)
	}
	return h.sum(), nil
}

// scored are the scores of a port.
type scored struct {
	ids    *idList
	values []float64
}

func (s *scored) Len() int            { return len(s.values) }
func (s *scored) Value(i int) float64 { return s.values[i] }

func (s *scored) ID(i int) (string, error) { return s.ids.ids[i], nil }

// addOutput adds what a port holds to the cell that is published.
func addOutput(c *publish.Cell, port *stages.Port, d stages.Data) error {
	if port.Type.Name == stages.Scores.Name {
		s := &scored{d.Items.(*portItems).ids, make([]float64, d.Items.Len())}
		for i := range s.values {
			b, err := d.Load(i)
			if err != nil {
				return err
			}
			if s.values[i], err = stages.ScalarOf(b); err != nil {
				return err
			}
		}
		c.Scores = append(c.Scores, publish.Score{Port: port.Name, Measure: stages.MeasureOf(d.Facts), Items: s})
		return nil
	}
	b, err := d.Load(0)
	if err != nil {
		return err
	}
	switch port.Type.Name {
	case stages.TableType.Name:
		t, err := stages.DecodeTable(b)
		if err != nil {
			return err
		}
		c.Tables = append(c.Tables, publish.Table{Port: port.Name, Table: t})
	case stages.Figure.Name:
		c.Figures = append(c.Figures, publish.Figure{Port: port.Name, Ext: d.Facts["ext"], Caption: d.Facts["caption"], Data: b})
	case stages.Text.Name:
		c.Texts = append(c.Texts, publish.Text{Port: port.Name, Markdown: string(b)})
	}
	return nil
}

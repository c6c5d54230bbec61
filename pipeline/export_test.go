package pipeline

import (
	"encoding/json"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// A Fate is how a cell ended.
type Fate int

const (
	NotReached Fate = iota // the run was stopped before
	FromStore
	Executed
	Failed
	Blocked
	Postponed
)

var fates = [...]Fate{schedule.Cached: FromStore, schedule.Done: Executed, schedule.Failed: Failed,
	schedule.Blocked: Blocked, schedule.Postponed: Postponed}

// Fate returns how c ended, and why if it has no results.
func (r *Result) Fate(c *plan.Cell) (Fate, error) {
	n := r.run.nodes[c.Index]
	if state := r.run.state(n); state < schedule.Failed {
		return fates[state], nil
	}
	return fates[r.run.state(n)], n.err
}

// OK reports whether c has results.
func (r *Result) OK(c *plan.Cell) bool { return r.run.nodes[c.Index].hasResults() }

// Key returns what c's results lie under in the store.
func (r *Result) Key(c *plan.Cell) stages.Digest { return r.run.nodes[c.Index].key }

// Definition names what was asked of c, without anything computed in it.
func (r *Result) Definition(c *plan.Cell) (stages.Digest, error) {
	return r.run.definition(r.run.nodes[c.Index])
}

// LimitLive bounds the bytes in flight of a job that folds draws, until the test ends.
func LimitLive(t *testing.T, bytes int64) {
	was := liveBytes
	liveBytes = bytes
	t.Cleanup(func() { liveBytes = was })
}

// Remember has the engine's store hold s as the speed of a cell.
func Remember(t *testing.T, e *Engine, p *plan.Plan, cell string, s Speed) {
	t.Helper()
	r, n := resolved(t, e, p, cell)
	n.meter.add(s)
	r.remember(n)
}

// RememberModel has the engine's store hold s as the speed of the model of a cell.
func RememberModel(t *testing.T, e *Engine, p *plan.Plan, cell string, s Speed) {
	t.Helper()
	r, n := resolved(t, e, p, cell)
	b, err := json.Marshal(s)
	if err == nil {
		here, _ := r.speedKeys(n)
		err = e.Store.SetMemo(here[3], b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func resolved(t *testing.T, e *Engine, p *plan.Plan, cell string) (*resolver, *node) {
	t.Helper()
	r := e.newResolver(p)
	r.lookAhead(t.Context(), nil)
	for _, n := range r.nodes {
		if n.String() == cell {
			return r, n
		}
	}
	t.Fatalf("there is no cell %s", cell)
	return nil, nil
}

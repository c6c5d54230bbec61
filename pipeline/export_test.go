package pipeline

import (
	"encoding/json"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
)

// Err returns why c has no results, nil if it has.
func (r *Result) Err(c *plan.Cell) error { return r.run.nodes[c.Index].err }

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

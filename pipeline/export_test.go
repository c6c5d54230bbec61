package pipeline

import (
	"encoding/json"
	"testing"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
)

// Err returns why c has no results, nil if it has.
func (r *Result) Err(c *plan.Cell) error { return r.run.errs[c.Index] }

// LimitLive bounds the bytes in flight of a job that folds draws, until the test ends.
func LimitLive(t *testing.T, bytes int64) {
	was := execute.LiveBytes
	execute.LiveBytes = bytes
	t.Cleanup(func() { execute.LiveBytes = was })
}

// Remember has the engine's store hold s as the speed of a cell, and those of others of the same run: names
// and speeds in turns.
func Remember(t *testing.T, e *Engine, p *plan.Plan, cell string, s execute.Speed, others ...any) {
	t.Helper()
	r, n := resolved(t, e, p, cell)
	run := newSpeeds(r)
	run.remember(n, s)
	for i := 0; i < len(others); i += 2 {
		_, n := resolved(t, e, p, others[i].(string))
		run.remember(n, others[i+1].(execute.Speed))
	}
}

// RememberModel has the engine's store hold s as the speed of the model of a cell.
func RememberModel(t *testing.T, e *Engine, p *plan.Plan, cell string, s execute.Speed) {
	t.Helper()
	r, n := resolved(t, e, p, cell)
	b, err := json.Marshal(s)
	if err == nil {
		here, _ := newSpeeds(r).keys(n)
		err = e.Store.SetMemo(here[3], b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func resolved(t *testing.T, e *Engine, p *plan.Plan, cell string) (*resolve.Resolver, *resolve.Cell) {
	t.Helper()
	r := e.newResolver(p, &reporter{})
	r.LookAhead(t.Context(), nil)
	for _, n := range r.Cells {
		if n.String() == cell {
			return r, n
		}
	}
	t.Fatalf("there is no cell %s", cell)
	return nil, nil
}

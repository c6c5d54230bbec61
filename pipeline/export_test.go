package pipeline

import (
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
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
)

var fates = [...]Fate{cached: FromStore, done: Executed, failed: Failed, blocked: Blocked}

// Fate returns how c ended, and why if it has no results.
func (r *Result) Fate(c *plan.Cell) (Fate, error) {
	n := r.run.nodes[c.Index]
	if n.state < failed {
		return fates[n.state], nil
	}
	return fates[n.state], n.err
}

// OK reports whether c has results.
func (r *Result) OK(c *plan.Cell) bool { return r.run.nodes[c.Index].state.ok() }

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

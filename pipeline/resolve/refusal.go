package resolve

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A refusal is what the store remembers of a program and what makes its results. Those made before it are
// never taken again, even when it is lifted.
type refusal struct {
	At  int64  // when it was last refused, in Unix nanoseconds; 0 if never
	Why string // the error; "" once a cell that was forced has passed
}

// anyRefusal is the key of a memo of stores that have any refusal, so that nobody else looks for one.
var anyRefusal = stages.Sum([]byte("refusals"))

func refusalKey(program stages.Digest, madeBy string) stages.Digest {
	return key.Of("refusal", []stages.Digest{program}, []string{madeBy})
}

// refusalOf returns what the store remembers of n's program as something makes its results. All values that n
// reads have finished.
func (r *Resolver) refusalOf(n *Cell, madeBy string) (f refusal) {
	if !r.mayBeRefused(n) {
		return f
	}
	if b, ok := r.Store.Memo(refusalKey(r.Keys.Trial(n.ID()), madeBy)); ok {
		_ = json.Unmarshal(b, &f) // an older value is whole, too
	}
	return f
}

// refusedSince reports whether what made a stored result of n was refused for its program since.
func (r *Resolver) refusedSince(n *Cell, hit store.Hit) bool {
	f := r.refusalOf(n, hit.MadeBy())
	if f.At == 0 {
		return false
	}
	a, err := r.Store.Action(hit)
	return err != nil || a.At <= f.At
}

// mayBeRefused reports whether it takes a longer look to know that nothing is refused for n.
func (r *Resolver) mayBeRefused(n *Cell) bool {
	_, any := r.Store.Memo(anyRefusal)
	return any && n.Stage.Device
}

// refusalHere is refusalOf for what would make results of the devices in use.
func (r *Resolver) refusalHere(n *Cell) (f refusal) {
	if !r.mayBeRefused(n) {
		return f
	}
	return r.refusalOf(n, r.Here())
}

// RefusedAt returns when the devices in use were last refused for n's program, in Unix nanoseconds; 0 if
// never.
func (r *Resolver) RefusedAt(n *Cell) int64 { return r.refusalHere(n).At }

// Refused returns the error of an earlier run if the devices in use are refused for n, and n isn't forced.
func (r *Resolver) Refused(n *Cell) error {
	if r.Forced(n.Cell) {
		return nil
	}
	if f := r.refusalHere(n); f.Why != "" {
		return fmt.Errorf("%s, or --force %s to try again", f.Why, n.Cell)
	}
	return nil
}

// Refuse has later runs take nothing that the devices in use have made of n's program.
func (r *Resolver) Refuse(n *Cell, why error) {
	r.setRefusal(n, refusal{time.Now().UnixNano(), why.Error()})
}

// Lift lifts a refusal for n, which was forced and has passed.
func (r *Resolver) Lift(n *Cell) {
	if f := r.refusalHere(n); f.Why != "" {
		r.setRefusal(n, refusal{At: f.At})
	}
}

// setRefusal remembers f. What can't be written is known as long as the store is open.
func (r *Resolver) setRefusal(n *Cell, f refusal) {
	b, err := json.Marshal(f)
	if err == nil {
		_ = r.Store.SetMemo(anyRefusal, []byte{1})
		_ = r.Store.SetMemo(refusalKey(r.Keys.Trial(n.ID()), r.Here()), b)
	}
}

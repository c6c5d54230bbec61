package resolve

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A refusal is the store's record that a maker of results is refused for a program. Results made before it
// are never used again, even if it is lifted.
type refusal struct {
	At     int64  // time of the last refusal, in Unix nanoseconds; 0 if never
	Why    string // the error; "" once a forced cell has passed
	Bounds string // the tolerances, see boundsOf; "" of builds before they were recorded
}

// boundsOf returns the tolerances by which results of n are judged.
func boundsOf(n *Cell) string {
	if p := stages.PrecisionOf(n.Params); p != stages.Float32 {
		return fmt.Sprint(n.Stage.Rounding[p]) // sorted
	}
	return fmt.Sprint(n.Stage.Tolerance)
}

// anyRefusal is the key of a memo of stores with any refusal, so that runs on other stores needn't look for
// one.
var anyRefusal = stages.Sum([]byte("refusals"))

func refusalKey(program stages.Digest, madeBy string) stages.Digest {
	return key.Of("refusal", []stages.Digest{program}, []string{madeBy})
}

// refusalOf returns the refusal of a maker of results for n's program. All values that n reads must have
// finished.
func (r *Resolver) refusalOf(n *Cell, madeBy string) (f refusal) {
	if !r.mayBeRefused(n) {
		return f
	}
	if b, ok := r.Store.Memo(refusalKey(r.Keys.Trial(n.ID()), madeBy)); ok {
		_ = json.Unmarshal(b, &f) // an older value is complete, too
	}
	return f
}

// refusedSince reports whether the maker of a stored result of n was refused for its program later.
func (r *Resolver) refusedSince(n *Cell, hit store.Hit) bool {
	f := r.refusalOf(n, hit.MadeBy())
	if f.At == 0 {
		return false
	}
	a, err := r.Store.Action(hit)
	return err != nil || a.At <= f.At
}

// mayBeRefused reports whether n's refusals have to be looked up.
func (r *Resolver) mayBeRefused(n *Cell) bool {
	_, any := r.Store.Memo(anyRefusal)
	return any && n.Stage.Device
}

// refusalHere is refusalOf for the devices in use.
func (r *Resolver) refusalHere(n *Cell) (f refusal) {
	if !r.mayBeRefused(n) {
		return f
	}
	return r.refusalOf(n, r.maker(n, r.Class, r.Here()))
}

// RefusedAt returns when the devices in use were last refused for n's program, in Unix nanoseconds; 0 if
// never.
func (r *Resolver) RefusedAt(n *Cell) int64 { return r.refusalHere(n).At }

// Refused returns the error of an earlier run if the devices in use are refused for n by the same tolerances,
// and n isn't forced.
func (r *Resolver) Refused(n *Cell) error {
	if r.Forced(n.Cell) {
		return nil
	}
	if f := r.refusalHere(n); f.Why != "" && f.Bounds == boundsOf(n) {
		return fmt.Errorf("%s, or --force %s to try again", f.Why, n.Cell)
	}
	return nil
}

// Refuse makes later runs use no result of n's program by the devices in use.
func (r *Resolver) Refuse(n *Cell, why error) {
	r.setRefusal(n, refusal{time.Now().UnixNano(), why.Error(), boundsOf(n)})
}

// Lift lifts a refusal for n, which was forced and has passed.
func (r *Resolver) Lift(n *Cell) {
	if f := r.refusalHere(n); f.Why != "" {
		r.setRefusal(n, refusal{At: f.At})
	}
}

// setRefusal stores f. If it can't be written, it is known as long as the store is open.
func (r *Resolver) setRefusal(n *Cell, f refusal) {
	b, err := json.Marshal(f)
	if err == nil {
		_ = r.Store.SetMemo(anyRefusal, []byte{1})
		_ = r.Store.SetMemo(refusalKey(r.Keys.Trial(n.ID()), r.maker(n, r.Class, r.Here())), b)
	}
}

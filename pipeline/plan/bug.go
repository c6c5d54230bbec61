package plan

import (
	"fmt"

	"github.com/sourcegraph/conc/panics"
)

// A BugError is a panic inside a stage or the engine.
type BugError struct{ Err error }

func (e *BugError) Error() string { return fmt.Sprintf("a bug in runexp: %v", e.Err) }
func (e *BugError) Unwrap() error { return e.Err }

// Bug returns a BugError.
func Bug(format string, args ...any) error { return &BugError{fmt.Errorf(format, args...)} }

// Catch turns a panic of the deferring function into an error that carries the stack: a bug of one stage is
// that stage's failure.
func Catch(err *error) {
	if v := recover(); v != nil {
		r := panics.NewRecovered(2, v)
		*err = &BugError{r.AsError()}
	}
}

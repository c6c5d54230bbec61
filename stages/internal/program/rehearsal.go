package program

import (
	"errors"
	"io"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Rehearsal is a slot on a processor where programs are made and none is loaded:
// what a stage asks of a net is refused or granted there as in earnest, in a fraction
// of the time. A program returns zeros the first times that it runs, and then
// [ErrRehearsed].
type Rehearsal struct {
	kept map[string]io.Closer
	act  int
}

// ErrRehearsed says that a program ran often enough, so that no more is to be seen of
// what it is for.
var ErrRehearsed = errors.New("the program ran often enough")

// enough is how often a program runs that takes two items one by one, and what they are
// compared with.
const enough = 3

// Begin begins the rehearsal of one more stage. What those before it had made is there.
func (r *Rehearsal) Begin() { r.act++ }

// Device returns the processor, and one thread of it.
func (r *Rehearsal) Device() stages.Device { return stages.Device{Class: "cpu", Threads: 1} }

// Keep keeps everything that is made until Close.
func (r *Rehearsal) Keep(key string, _ int64, make func() (io.Closer, error)) (io.Closer, error) {
	if c, ok := r.kept[key]; ok {
		return c, nil
	}
	c, err := make()
	if err != nil {
		return nil, err
	}
	if r.kept == nil {
		r.kept = map[string]io.Closer{}
	}
	r.kept[key] = c
	return c, nil
}

// Share does the same.
func (r *Rehearsal) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return r.Keep(key, weight, make)
}

// Close lets go of what was made.
func (r *Rehearsal) Close() error {
	var errs []error
	for _, c := range r.kept {
		errs = append(errs, c.Close())
	}
	r.kept = nil
	return errors.Join(errs...)
}

// run takes note that a program runs.
func (r *Rehearsal) run(p *Program) error {
	if p.act != r.act {
		p.act, p.ran = r.act, 0
	}
	if p.ran == enough {
		return ErrRehearsed
	}
	p.ran++
	return nil
}

// A Remarker is the parameters of a stage of which there is something to know on some
// nets. The remark is "" on the others.
type Remarker interface {
	Remark(g *onnx.Graph) string
}

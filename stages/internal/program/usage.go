package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/ort"
)

// A Usage is how a program uses a device that isn't the processor, measured on blank images.
type Usage struct {
	Program   string     `json:"program"` // "forward", or "gradient of …" with what it answers
	Device    string     `json:"device"`
	Batch     int        `json:"batch"`
	Nodes     int        `json:"nodes"`               // that a run computes, copies aside
	Fallbacks []Fallback `json:"fallbacks,omitempty"` // of them, by the processor
	ToHost    Copies     `json:"to_host"`             // within a run, of what the processor's nodes read
	FromHost  Copies     `json:"from_host"`           // and of what they made
	Inputs    Copies     `json:"inputs"`              // of a run
	Outputs   Copies     `json:"outputs"`
	Run       float64    `json:"run"`             // seconds
	Computing float64    `json:"device_computes"` // of them, 0 where the device doesn't tell
	// Cost is the share of Run that fallbacks and copies within it take; at least that where the device
	// doesn't tell when it computes.
	Cost float64 `json:"cost"`
}

// A Fallback is an operator that the processor computes.
type Fallback struct {
	Operator string  `json:"operator"`
	Nodes    int     `json:"nodes"`
	Seconds  float64 `json:"seconds"` // of a run, in which the device doesn't compute
}

// Copies are values that are copied in a run.
type Copies struct {
	Number int   `json:"number"`
	Bytes  int64 `json:"bytes"`
}

// dear is the share of a run from which fallbacks and copies are worth a warning.
var dear = 0.1 // tests change it

// Name returns the program's name without what it answers: "gradient".
func (u Usage) Name() string {
	name, _, _ := strings.Cut(u.Program, " of ")
	name, _, _ = strings.Cut(name, ",")
	return name
}

// Operators names the fallbacks and their numbers: "Det 1, Transpose 2".
func (u Usage) Operators() string {
	var words []string
	for _, f := range u.Fallbacks {
		words = append(words, fmt.Sprintf("%s %d", f.Operator, f.Nodes))
	}
	return strings.Join(words, ", ")
}

// warn warns if fallbacks and copies are dear.
func (u Usage) warn(warn func(format string, args ...any)) {
	if u.Cost > dear {
		warn("%s lacks operators that the program %s needs: what the processor computes instead (%s), with "+
			"copies there and back (%d a run), takes %.0f%% of the time; runexp inspect MODEL --devices "+
			"%[1]s tells more", u.Device, u.Name(), u.Operators(), u.ToHost.Number+u.FromHost.Number,
			100*u.Cost)
	}
}

// usageOf measures a program on a device, in a session of its own.
func (n *Net) usageOf(ctx context.Context, d stages.Device, name string, p *lower.Lowered) (u Usage,
	err error) {
	runtime, err := ort.For(n.digest, true)
	if err != nil {
		return Usage{}, err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	model, err := p.Model.Encode()
	if err != nil {
		return u, err
	}
	s, err := session(runtime.Profiled(), p, model, d)
	if err != nil {
		return Usage{}, err
	}
	if err := n.runBlank(ctx, s, p); err != nil {
		return Usage{}, errors.Join(err, s.Close())
	}
	profile, err := s.EndProfile()
	if err != nil {
		return Usage{}, err
	}
	u = Usage{Program: name, Device: d.String(), Batch: p.Batch,
		Run: profile.Run.Seconds(), Computing: profile.Device.Seconds(), Cost: profile.Cost(d.Class)}
	for _, f := range profile.Fallbacks(d.Class) {
		u.Fallbacks = append(u.Fallbacks, Fallback{f.Operator, f.Nodes, f.Time.Seconds()})
	}
	out, in := profile.Copies()
	u.ToHost, u.FromHost = Copies{out.Nodes, out.Bytes}, Copies{in.Nodes, in.Bytes}
	for _, part := range profile.Parts {
		u.Nodes += part.Nodes
	}
	u.Nodes -= out.Nodes + in.Nodes
	for _, v := range p.Inputs {
		u.Inputs.add(onnx.Size(v.Shape))
	}
	u.Outputs.add(p.Batch * n.Classes)
	for _, v := range p.Outputs {
		u.Outputs.add(onnx.Size(v.Shape))
	}
	return u, nil
}

// runBlank runs a program on zeros: the first time to compile, and twice to be measured.
func (n *Net) runBlank(ctx context.Context, s *ort.Session, p *lower.Lowered) (err error) {
	runtime, err := ort.Default()
	if err != nil {
		return err
	}
	var in, out []ort.Value
	defer func() {
		for _, v := range slices.Concat(in, out) {
			err = errors.Join(err, v.Close())
		}
	}()
	zeros := func(to *[]ort.Value, shape ...int) error {
		t, err := ort.NewTensor[float32](runtime, shape...)
		if err == nil {
			*to = append(*to, t)
		}
		return err
	}
	for _, v := range p.Inputs {
		err = errors.Join(err, zeros(&in, v.Shape...))
	}
	err = errors.Join(err, zeros(&out, p.Batch, n.Classes))
	for _, v := range p.Outputs {
		err = errors.Join(err, zeros(&out, v.Shape...))
	}
	for range 3 {
		if err == nil {
			err = n.short(s.Run(ctx, in, out), p.Batch)
		}
	}
	return err
}

// add counts a value of that many float32.
func (c *Copies) add(numbers int) { c.Number, c.Bytes = c.Number+1, c.Bytes+4*int64(numbers) }

// watch measures a program in a rehearsal that does so. Elsewhere it measures one that falls back, once for
// all of its batches, and warns if that is dear.
func (n *Net) watch(ctx context.Context, slot stages.Slot, name string, p *lower.Lowered,
	fallsBack bool) error {
	d := slot.Device()
	if r, ok := slot.(*Rehearsal); ok {
		if r.on == nil {
			return nil
		}
		u, err := n.usageOf(ctx, d, name, p)
		if err == nil {
			r.Usages = append(r.Usages, u)
		}
		return err
	}
	if !fallsBack || n.warn == nil {
		return nil
	}
	_, err := slot.Share(fmt.Sprintf("usage of %s by program %s of %s", d.Class, name, n.digest), 0,
		func() (io.Closer, error) {
			u, err := n.usageOf(ctx, d, name, p)
			if ctx.Err() != nil {
				return nil, err
			}
			if err == nil { // else the program runs nevertheless, or says why not
				u.warn(n.warn)
			}
			return watched{}, nil
		})
	return err
}

// watched says that a program was.
type watched struct{}

func (watched) Close() error { return nil }

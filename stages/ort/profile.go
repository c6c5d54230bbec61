package ort

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// A Profile is what ONNX Runtime recorded of a session's runs: the mean of all except the first, in which a
// provider compiles.
type Profile struct {
	Run time.Duration // from the call of a run to its end
	// Device is how long the provider's device computed in that time; 0 if the provider doesn't record it.
	Device time.Duration
	Parts  []Part // one for each operator and provider
}

// A Part sums the nodes of one operator in a run.
type Part struct {
	Provider, Operator string
	Nodes              int
	Bytes              int64 // bytes of the outputs
	// Time is how long the nodes took while the device didn't compute. If the device's own times aren't
	// recorded, it is 0 for copies from the device, which wait for it.
	Time time.Duration
}

// ONNX Runtime adds these operators between nodes of different providers.
const (
	toHost   = "MemcpyToHost"
	fromHost = "MemcpyFromHost"
)

// Copies returns the copies between the provider's device and the host within the graph, without the copies
// of the run's inputs and outputs.
func (p Profile) Copies() (out, in Part) {
	for _, u := range p.Parts {
		switch u.Operator {
		case toHost:
			out.add(u)
		case fromHost:
			in.add(u)
		}
	}
	return out, in
}

// Fallbacks returns the operators that the CPU computed in a session on a class's device, the slowest
// first.
func (p Profile) Fallbacks(class string) []Part {
	if class == "cpu" {
		return nil
	}
	var list []Part
	for _, u := range p.Parts {
		copies := u.Operator == toHost || u.Operator == fromHost
		if u.Provider != ProviderOf(class).Name && !copies {
			list = append(list, u)
		}
	}
	slices.SortStableFunc(list, func(a, b Part) int { return cmp.Compare(b.Time, a.Time) })
	return list
}

// Cost returns the fraction of a run that fallbacks and copies took in a session on a class's device. It is
// a lower bound: if the device's own times aren't recorded, copies from it count as free.
func (p Profile) Cost(class string) float64 {
	if p.Run == 0 {
		return 0
	}
	var sum time.Duration
	for _, u := range p.Fallbacks(class) {
		sum += u.Time
	}
	to, from := p.Copies()
	return float64(sum+to.Time+from.Time) / float64(p.Run)
}

func (u *Part) add(v Part) {
	u.Operator, u.Provider = v.Operator, v.Provider
	u.Nodes += v.Nodes
	u.Bytes += v.Bytes
	u.Time += v.Time
}

// Profiled returns the runtime for sessions that record a profile. The caller ends them by
// [Session.EndProfile].
func (r *Runtime) Profiled() *Runtime {
	own := *r
	own.profiled = true
	return &own
}

// Alone returns the runtime for sessions whose device computes everything, without the CPU. A session that
// can't fails with an error that [FallsBack].
func (r *Runtime) Alone() *Runtime {
	own := *r
	own.alone = true
	return &own
}

// FallsBack reports whether err means that a session would need the CPU as well.
func FallsBack(err error) bool {
	return err != nil && strings.Contains(err.Error(), "fallback to CPU EP has been explicitly disabled")
}

// A recording is the folder of a session's profile, "" without one.
type recording string

// record makes a session with these options record a profile, if the runtime is [Runtime.Profiled].
func (r *Runtime) record(o *onnxruntime.SessionOptions) (recording, error) {
	if !r.profiled {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "runexp-profile-")
	if err != nil {
		return "", err
	}
	if err := o.EnableProfiling(filepath.Join(dir, "p")); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return recording(dir), nil
}

func (r recording) remove() error {
	if r == "" {
		return nil
	}
	return os.RemoveAll(string(r))
}

// EndProfile closes the session and returns its profile. It is an error if the session ran less than twice.
func (s *Session) EndProfile() (p Profile, err error) {
	if s.worker != nil {
		reply, err := s.worker.call(context.Background(), &message{Do: doUnload, Session: s.number,
			Profiled: true})
		if err != nil {
			return Profile{}, err
		}
		return *reply.Profile, nil
	}
	r := s.recording
	s.recording = "" // Close lets the library write the file, which must stay
	defer func() { err = errors.Join(err, r.remove()) }()
	if err := s.Close(); err != nil {
		return Profile{}, err
	}
	return r.read()
}

// maxProfile bounds the file of a profile: a node of a run takes some 1000 bytes.
const maxProfile = 1 << 30

func (r recording) read() (Profile, error) {
	files, _ := filepath.Glob(filepath.Join(string(r), "*.json")) // the pattern is well-formed
	if len(files) != 1 {
		return Profile{}, fmt.Errorf("ONNX Runtime wrote %d profiles of a session", len(files))
	}
	b, err := stages.ReadFile(files[0], maxProfile)
	if err != nil {
		return Profile{}, err
	}
	return profileOf(b)
}

// An event is a line of the library's file; its times are in microseconds.
type event struct {
	Cat  string
	Name string
	TS   int64
	Dur  int64
	Args struct {
		Operator string `json:"op_name"`
		Provider string
		Bytes    int64 `json:"output_size,string"`
	}
}

// holders are operators whose nodes contain others, which are recorded too.
var holders = []string{"If", "Loop", "Scan"}

// profileOf parses the library's file.
func profileOf(b []byte) (Profile, error) {
	var events []event
	if err := json.Unmarshal(b, &events); err != nil {
		return Profile{}, fmt.Errorf("ONNX Runtime's profile: %w", err)
	}
	var runs, device []span
	for _, e := range events {
		switch s := (span{e.TS, e.TS + e.Dur}); {
		case e.Cat == "Session" && e.Name == "model_run":
			runs = append(runs, s)
		case e.Cat != "Session" && e.Cat != "Node":
			device = append(device, s) // a kernel, at the times when the device computed it
		}
	}
	if len(runs) < 2 {
		return Profile{}, errors.New("ONNX Runtime's profile has no second run")
	}
	slices.SortFunc(runs, span.compare)
	runs = runs[1:]
	device = merged(device)
	var p Profile
	for _, r := range runs {
		p.Run += micro(r.to - r.from)
		p.Device += micro(covered(device, r))
	}
	parts := map[[2]string]*Part{}
	for _, e := range events {
		s := span{e.TS, e.TS + e.Dur}
		if e.Cat != "Node" || slices.Contains(holders, e.Args.Operator) ||
			!slices.ContainsFunc(runs, func(r span) bool { return r.from <= s.from && s.to <= r.to }) {
			continue
		}
		key := [2]string{e.Args.Provider, e.Args.Operator}
		u := parts[key]
		if u == nil {
			u = &Part{Provider: key[0], Operator: key[1]}
			parts[key] = u
		}
		took := micro(e.Dur - covered(device, s))
		if e.Args.Operator == toHost && len(device) == 0 {
			took = 0
		}
		u.add(Part{key[0], key[1], 1, e.Args.Bytes, took})
	}
	n := len(runs)
	p.Run /= time.Duration(n)
	p.Device /= time.Duration(n)
	for _, u := range parts {
		u.Nodes, u.Bytes, u.Time = u.Nodes/n, u.Bytes/int64(n), u.Time/time.Duration(n)
		p.Parts = append(p.Parts, *u)
	}
	slices.SortFunc(p.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Operator, b.Operator))
	})
	return p, nil
}

func micro(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// A span is a time from one microsecond to another, exclusive.
type span struct{ from, to int64 }

func (s span) compare(t span) int { return cmp.Compare(s.from, t.from) }

// merged returns the spans in order, with adjoining ones joined.
func merged(list []span) (out []span) {
	slices.SortFunc(list, span.compare)
	for _, s := range list {
		if k := len(out) - 1; k >= 0 && s.from <= out[k].to {
			out[k].to = max(out[k].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// covered returns how much of s the merged spans cover.
func covered(list []span, s span) (sum int64) {
	first, _ := slices.BinarySearchFunc(list, s, func(a, s span) int { return cmp.Compare(a.to, s.from) })
	for _, a := range list[first:] {
		if a.from >= s.to {
			break
		}
		sum += max(0, min(a.to, s.to)-max(a.from, s.from))
	}
	return sum
}

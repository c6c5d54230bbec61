package ort

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

const workerName = "ort-worker"

// TestMain makes the test's program a worker if it's called as one.
func TestMain(m *testing.M) {
	if os.Args[0] == workerName {
		Serve(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// workers has the test's program start workers.
func workers(t *testing.T) {
	UseWorkers(workerName)
	t.Cleanup(func() { UseWorkers() })
}

func multiplied(f *onnx.Fragment) {
	f.OpTo("y", "Mul", []string{"x", f.Floats("third", []float32{1. / 3})})
}

// third returns what a session of [multiplied] returns, be it filled or fetched.
func third(t *testing.T, r *Runtime, s *Session) []float32 {
	x, errX := NewTensor[float32](r, 3)
	y, errY := NewTensor[float32](r, 3)
	if err := errors.Join(errX, errY); err != nil {
		t.Error(err)
		return nil
	}
	defer x.Close()
	defer y.Close()
	copy(x.Data, []float32{1, -7, 1e-30})
	if err := s.Run(t.Context(), []Value{x}, []Value{y}); err != nil {
		t.Error(err)
	}
	got, err := Fetch[float32](t.Context(), s, []Value{x})
	if err != nil || !slices.Equal(got[0].Data, y.Data) || !slices.Equal(got[0].Shape, []int{3}) {
		t.Errorf("fetched %v, %v, want %v", got, err, y.Data)
	}
	return slices.Clone(y.Data)
}

// A session in a process of its own does what one in this process does, whichever goroutine calls it.
func TestApart(t *testing.T) {
	here := library(t)
	workers(t)
	there, err := For(stages.Digest{}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if there.worker == nil {
		t.Fatal("there is no worker")
	}
	model := doubler(t, 3, multiplied)
	var want []float32
	for _, r := range []*Runtime{here, there} {
		s, err := r.NewSession(model, []string{"x"}, []string{"y"}, cpu)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = third(t, r, s)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got := third(t, r, s); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		}
		wg.Wait()
		if _, err := Fetch[int64](t.Context(), s, nil); err == nil {
			t.Error("a model was run without its input")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	// Errors are the same too.
	for _, model := range [][]byte{[]byte("this is no model"),
		doubler(t, 3, func(f *onnx.Fragment) { f.OpTo("y", "Unknown", []string{"x"}) })} {
		_, errHere := here.NewPlainSession(model, []string{"x"}, []string{"y"})
		_, errThere := there.NewPlainSession(model, []string{"x"}, []string{"y"})
		if errHere == nil || errThere == nil || errHere.Error() != errThere.Error() {
			t.Errorf("here %v, there %v", errHere, errThere)
		}
	}
	b, err := there.Simplify(model)
	if want, errHere := here.Simplify(model); err != nil || errHere != nil || string(b) != string(want) {
		t.Errorf("simplified otherwise: %v, %v", err, errHere)
	}
	infos, err := there.Outputs(model)
	if want, errHere := here.Outputs(model); err != nil || errHere != nil || len(infos) != 1 ||
		infos[0].Name != want[0].Name || !slices.Equal(infos[0].Dims, want[0].Dims) {
		t.Errorf("outputs %v, want %v; %v, %v", infos, want, err, errHere)
	}
}

// A process that ended is an error of all calls that need it, and others are none of its business; one that
// did well is used again.
func TestWorkerEnds(t *testing.T) {
	library(t)
	workers(t)
	r, err := Isolated()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewPlainSession(doubler(t, 3, add), []string{"x"}, []string{"y"})
	if err != nil {
		t.Fatal(err)
	}
	r.worker.cmd.Process.Kill()
	var fault *Fault
	if _, err := r.Simplify(doubler(t, 3, add)); !errors.As(err, &fault) ||
		!errors.Is(err, stages.ErrOutOfMemory) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the error is %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	r.Close()
	next, err := Isolated()
	if err != nil {
		t.Fatal(err)
	}
	if next.worker == r.worker {
		t.Error("a process that ended is used again")
	}
	next.Close()
	again, err := Isolated()
	if err != nil {
		t.Fatal(err)
	}
	if again.worker != next.worker {
		t.Error("a process that did well isn't used again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := again.worker.call(ctx, &message{Do: doOutputs}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	again.Close()
}

func TestLimitsOfVariables(t *testing.T) {
	for _, c := range []struct{ name, value string }{{timeVariable, "5"}, {timeVariable, "-1s"},
		{memoryVariable, "much"}, {memoryVariable, "0"}} {
		t.Run(c.name+" "+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if _, err := cautious(); err == nil || !strings.Contains(err.Error(), c.name) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

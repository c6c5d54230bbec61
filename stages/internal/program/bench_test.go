package program_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

const (
	benchBatch  = 8
	benchRounds = 5
)

// BenchmarkGradient measures a forward pass and the gradient of the images, as attribute/saliency has it made
// of a batch by a worker a core, on the nets of testdata/shapes.py, compared with ONNX Runtime's own forward
// pass over the net's file, all its optimisations on, and with PyTorch's gradient of the images, both with a
// thread a core. One run of each makes a round; medians of rounds are reported, so that what else the machine
// does meets all alike. The gradient's processor time compares builds on a machine that does other work.
func BenchmarkGradient(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"resnet18", "resnet50", "mobilenet_v2", "squeezenet", "vit_b_16"} {
		b.Run(name, func(b *testing.B) { benchGradient(b, filepath.Join(root, ".bench"), name) })
	}
}

func benchGradient(b *testing.B, dir, name string) {
	path := filepath.Join(dir, name+".onnx")
	if _, err := os.Stat(path); err != nil {
		b.Skipf("skipped: there is no %s, which testdata/shapes.py writes", path)
	}
	threads := min(2, runtime.NumCPU())
	n := net(b, model.ONNXParams{Path: path, Preset: "unit", Size: picture.Size{H: 224, W: 224}})
	forward := bareForward(b, path, n, threads)
	var workers []program.Gradient
	for _, slot := range stagetest.NewWorkers(threads) {
		g, err := n.Gradient(b.Context(), slot, lower.Question{Rules: relevance.Derivative()},
			benchBatch/threads)
		if err != nil {
			b.Fatal(err)
		}
		for i := range g.Batch {
			wave(i, g.Image(i))
			g.Explain(i, program.Target{Class: 0, Minus: -1})
		}
		workers = append(workers, g)
	}
	gradient := func() (wall, cpu time.Duration) {
		start, before := time.Now(), processor(b)
		p := pool.New().WithErrors()
		for _, g := range workers {
			p.Go(func() error {
				for range benchBatch / threads / g.Batch {
					if err := g.Run(b.Context()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := p.Wait(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start), time.Duration((processor(b) - before) * float64(time.Second))
	}
	peer, without := startPyTorch(b, name, threads)

	var fwd, grad, cpu, torch, overForward, overTorch []float64
	for b.Loop() {
		for round := range 1 + benchRounds {
			f := forward()
			d, used := gradient()
			p := time.Duration(0)
			if peer != nil {
				p = peer()
			}
			if round == 0 { // memory is being fetched, kernels are being chosen
				continue
			}
			fwd, grad, cpu = append(fwd, milliseconds(f)), append(grad, milliseconds(d)), append(cpu,
				milliseconds(used))
			overForward = append(overForward, float64(d)/float64(f))
			if peer != nil {
				torch = append(torch, milliseconds(p))
				overTorch = append(overTorch, float64(d)/float64(p))
			}
		}
	}
	b.ReportMetric(0, "ns/op") // a round is of no interest
	b.ReportMetric(middle(fwd), "forward-ms/image")
	b.ReportMetric(middle(grad), "gradient-ms/image")
	b.ReportMetric(middle(cpu), "gradient-cpu-ms/image")
	b.ReportMetric(middle(overForward), "gradient/forward")
	text := fmt.Sprintf("batch %d, %d threads, %d rounds, ms an image, median (least to most): ONNX "+
		"Runtime's forward %s, gradient %s, %s× that forward",
		benchBatch, threads, len(fwd), spread(fwd), spread(grad), spread(overForward))
	if without != "" {
		b.Logf("%s. %s", text, without)
		return
	}
	b.ReportMetric(middle(torch), "PyTorch-ms/image")
	b.ReportMetric(middle(overTorch), "gradient/PyTorch")
	b.Logf("%s; PyTorch's gradient %s, ours %s× that", text, spread(torch), spread(overTorch))
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond) / benchBatch
}

func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func spread(v []float64) string {
	return fmt.Sprintf("%.3g (%.3g to %.3g)", middle(v), slices.Min(v), slices.Max(v))
}

// bareForward returns a timed run of a net's file as it is.
func bareForward(b *testing.B, path string, n *program.Net, threads int) func() time.Duration {
	b.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	r := modeltest.Runtime(b)
	s, err := r.NewSession(file, []string{n.Input}, []string{n.Output},
		stages.Device{Class: "cpu", Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	in, err := ort.NewTensor[float32](r, benchBatch, n.Channels, n.Height, n.Width)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close() })
	out, err := ort.NewTensor[float32](r, benchBatch, n.Classes)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { out.Close() })
	for i := range benchBatch {
		wave(i, in.Data[i*n.Size():(i+1)*n.Size()])
	}
	return func() time.Duration {
		start := time.Now()
		if err := s.Run(b.Context(), []ort.Value{in}, []ort.Value{out}); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
}

// startPyTorch returns PyTorch's gradient of a net, timed by itself in a process of its own, or why there is
// none.
func startPyTorch(b *testing.B, name string, threads int) (run func() time.Duration, without string) {
	b.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	cmd := exec.Command(python, filepath.Join("testdata", "shapes.py"), "time", name,
		strconv.Itoa(benchBatch), strconv.Itoa(threads))
	var said strings.Builder
	cmd.Stderr = &said
	ask, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	tell, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Sprintf("Without PyTorch: %v", err)
	}
	b.Cleanup(func() {
		ask.Close()
		_ = cmd.Wait() // it was heard
	})
	lines := bufio.NewScanner(tell)
	if !lines.Scan() { // its version
		return nil, "Without PyTorch: " + strings.TrimSpace(said.String())
	}
	return func() time.Duration {
		io.WriteString(ask, "gradient\n")
		if !lines.Scan() {
			b.Fatalf("PyTorch gave up: %s", said.String())
		}
		seconds, err := strconv.ParseFloat(lines.Text(), 64)
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(seconds * float64(time.Second))
	}, ""
}

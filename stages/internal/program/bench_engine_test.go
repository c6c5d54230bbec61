package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// BenchmarkEngine measures what the engine adds to the sessions it runs: the command makes saliency maps of
// stored images, with everything that it does from its start to its end, compared with a loop here that
// compiles the same two programs, one for the predicted class and one for the derivative, and runs them as
// often. Both have a worker a core, and are also measured in seconds of the processor, which other work on
// the machine disturbs less. With -benchtime 5x the ratios are medians of five rounds.
func BenchmarkEngine(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	command := filepath.Join(b.TempDir(), "runexp")
	if out, err := exec.Command("go", "build", "-o", command,
		filepath.Join(root, "cmd", "runexp")).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, e := range []engineBench{
		{"resnet", model.ONNXParams{Path: filepath.Join(root, "experiments", "quickstart", "resnet.onnx"),
			Preset: "half"}, 64, 2048},
		{"resnet50", model.ONNXParams{Path: filepath.Join(root, ".bench", "resnet50.onnx"), Preset: "unit",
			Size: picture.Size{H: 224, W: 224}}, 224, 96},
		{"mobilenet_v2", model.ONNXParams{Path: filepath.Join(root, ".bench", "mobilenet_v2.onnx"),
			Preset: "unit", Size: picture.Size{H: 224, W: 224}}, 224, 96},
		{"squeezenet", model.ONNXParams{Path: filepath.Join(root, ".bench", "squeezenet.onnx"),
			Preset: "unit", Size: picture.Size{H: 224, W: 224}}, 224, 96},
		{"vit_b_16", model.ONNXParams{Path: filepath.Join(root, ".bench", "vit_b_16.onnx"), Preset: "unit",
			Size: picture.Size{H: 224, W: 224}}, 224, 48},
	} {
		b.Run(e.name, func(b *testing.B) { e.run(b, command) })
	}
}

// An engineBench is a net and how many images of which size it explains.
type engineBench struct {
	name         string
	net          model.ONNXParams
	size, images int
}

func (e engineBench) run(b *testing.B, command string) {
	if _, err := os.Stat(e.net.Path); err != nil {
		b.Skipf("skipped: there is no %s, which testdata/shapes.py writes", e.net.Path)
	}
	dir := b.TempDir()
	images := fmt.Sprintf("name: engine\ntitle: What does the engine add?\nstages:\n"+
		"  images: {uses: dataset/shapes, with: {count: %d, size: %d}}\n  model: {uses: model/onnx, with: "+
		"{path: %q, preset: %s, size: %d}}\n",
		e.images, e.size, e.net.Path, e.net.Preset, e.net.Size)
	maps := images + "  maps: {uses: attribute/saliency, in: {model: model, images: images}}\n"
	var engine, loop, over, overProcessor []float64
	for b.Loop() {
		round := len(engine)
		e.execute(b, command, dir, round, images)
		c, l := e.execute(b, command, dir, round, maps), e.bare(b)
		engine, loop = append(engine, c.wall), append(loop, l.wall)
		over, overProcessor = append(over, c.wall/l.wall), append(overProcessor, c.processor/l.processor)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(over), "engine/bare")
	b.ReportMetric(middle(overProcessor), "engine/bare-processor")
	b.Logf("%d images of %d², %d rounds, seconds, median (least to most): engine %s, bare %s, ratio %s, of "+
		"processor time %s",
		e.images, e.size, len(over), spread(engine), spread(loop), spread(over), spread(overProcessor))
}

// cost is in seconds.
type cost struct{ wall, processor float64 }

// execute runs the command on an experiment, with the store of the round.
func (e engineBench) execute(b *testing.B, command, dir string, round int, text string) cost {
	file := filepath.Join(dir, "engine.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(command, "run", file, "--quiet", "--batch", strconv.Itoa(benchBatch),
		"--store", filepath.Join(dir, fmt.Sprint("store", round)), "--out", filepath.Join(dir,
			fmt.Sprint("out", round)))
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return cost{time.Since(start).Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
}

// bare runs the same passes of the same programs.
func (e engineBench) bare(b *testing.B) cost {
	start, before := time.Now(), processor(b)
	n := net(b, e.net)
	p := pool.New().WithErrors()
	slots := stagetest.NewWorkers(runtime.NumCPU())
	for _, slot := range slots {
		f, err := n.Forward(b.Context(), slot, benchBatch)
		if err != nil {
			b.Fatal(err)
		}
		for i := range f.Batch {
			wave(i, f.Image(i))
		}
		g, err := n.Gradient(b.Context(), slot, lower.Question{Rules: relevance.Derivative()}, benchBatch)
		if err != nil {
			b.Fatal(err)
		}
		for i := range g.Batch {
			wave(i, g.Image(i))
			g.Explain(i, program.Target{Class: 0, Minus: -1})
		}
		p.Go(func() error {
			images := e.images / len(slots)
			for range images / f.Batch {
				if err := f.Run(b.Context()); err != nil {
					return err
				}
			}
			for range images / g.Batch {
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
	spent := cost{time.Since(start).Seconds(), processor(b) - before}
	stagetest.Release(slots...)
	return spent
}

// processor returns the seconds of processor time that this process has used.
func processor(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

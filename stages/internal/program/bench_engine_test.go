package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

const engineImages = 2048

// BenchmarkEngine measures what the engine adds to the sessions it runs: the command
// makes saliency maps of stored images, with everything that it does from its start
// to its end, beside a loop here that compiles the same program and runs it as often.
func BenchmarkEngine(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	command := filepath.Join(dir, "runexp")
	if out, err := exec.Command("go", "build", "-o", command, filepath.Join(root, "cmd", "runexp")).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(root, "experiments", "quickstart", "resnet.onnx")
	images := fmt.Sprintf("name: engine\ntitle: What does the engine add?\nstages:\n"+
		"  images: {uses: dataset/shapes, with: {count: %d}}\n  model: {uses: model/onnx, with: {path: %q, preset: half}}\n", engineImages, path)
	maps := images + "  maps: {uses: attribute/saliency, in: {model: model, images: images}, with: {target: \"0\"}}\n"
	execute := func(round int, name, text string) time.Duration {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		store := filepath.Join(dir, fmt.Sprint("store", round))
		start := time.Now()
		out, err := exec.Command(command, "run", file, "--quiet", "--batch", "8", "--store", store, "--out", filepath.Join(dir, fmt.Sprint("out", round))).CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(start)
	}
	bare := func() time.Duration {
		start := time.Now()
		n := net(b, model.ONNXParams{Path: path, Preset: "half"})
		g, err := n.Gradient(b.Context(), threaded{2, stagetest.NewSlot()}, program.Question{Rules: "gradient"}, 8)
		if err != nil {
			b.Fatal(err)
		}
		for i := range 8 {
			wave(i, g.Image(i))
			g.Explain(i, program.Target{Class: 0, Minus: -1})
		}
		for range engineImages / 8 {
			if err := g.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
	var engine, loop, over []float64
	for b.Loop() {
		for range 5 {
			round := len(engine)
			execute(round, "images.yaml", images)
			e, l := execute(round, "maps.yaml", maps), bare()
			engine, loop, over = append(engine, e.Seconds()), append(loop, l.Seconds()), append(over, e.Seconds()/l.Seconds())
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(over), "engine/bare")
	b.Logf("%d images of 64², %d rounds, seconds, median (least to most): engine %s, bare %s, ratio %s",
		engineImages, len(over), spread(engine), spread(loop), spread(over))
}

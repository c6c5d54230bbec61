package perturb_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
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

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

const metricRounds = 3

// A metricBench is a net, and how many images two runs of the command have.
type metricBench struct {
	name, preset string
	path         string
	size         int
	steps        int // of curves
	few, many    int
	metrics      []string // nil for all
}

// BenchmarkMetrics measures metrics in images a second: the command on an experiment, as the slope between
// two numbers of images, so that its start and the compilation of programs don't count; the passes of the
// same programs that the metric needs, in a loop; and the official code and a well-batched one in PyTorch, as
// testdata/metrics.py writes them; of the metrics of replaced subsets, Quantus and captum. All have two
// threads, or one with GOMAXPROCS=1: on a machine that has other work, PyTorch's threads mostly wait for each
// other. One run of each makes a round; medians of rounds, and of their ratios, are reported. Ratios of
// processor time are less disturbed by other work.
//
// Images and maps are random. On the shapes of ResNet-50 and ViT-B/16 curves have 28 steps rather than 224,
// here and in PyTorch: they cost an eighth, and what an image costs apart from its passes weighs eight times
// as much.
func BenchmarkMetrics(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	command := filepath.Join(b.TempDir(), "runexp")
	if out, err := exec.Command("go", "build", "-o", command,
		filepath.Join(root, "cmd", "runexp")).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	shapes := filepath.Join(root, ".bench")
	for _, m := range []metricBench{
		{"resnet18_32", "unit", filepath.Join(shapes, "resnet18_32.onnx"), 32, 32, 16, 64,
			[]string{"mas-rise", "ablation", "road"}},
		{"resnet", "half", filepath.Join(root, "experiments/quickstart/resnet.onnx"), 64, 64, 16, 64, nil},
		{"resnet50", "unit", filepath.Join(shapes, "resnet50.onnx"), 224, 28, 2, 4,
			[]string{"mas-rise", "ablation", "road"}},
		{"vit_b_16", "unit", filepath.Join(shapes, "vit_b_16.onnx"), 224, 28, 2, 4, []string{"mas-rise"}},
	} {
		b.Run(m.name, func(b *testing.B) {
			if _, err := os.Stat(m.path); err != nil {
				b.Skipf("skipped: there is no %s, which testdata/metrics.py or "+
					"../internal/program/testdata/shapes.py writes", m.path)
			}
			m.run(b, command)
		})
	}
}

func (m metricBench) run(b *testing.B, command string) {
	modeltest.Runtime(b)
	ask := m.startTorch(b)
	names := append([]string{"mas-rise", "ablation", "road", "pic", "gae"},
		slices.Sorted(maps.Keys(subsetMetrics))...)
	for _, metric := range names {
		if m.metrics != nil && !slices.Contains(m.metrics, metric) {
			continue
		}
		b.Run(metric, func(b *testing.B) {
			var ours, bare, official, batched []cost
			var remarks [2]string
			peers := []string{"official", "batched"}
			if subsetMetrics[metric].passes > 0 {
				peers = []string{"quantus", "captum"}
			}
			for b.Loop() {
				for range metricRounds {
					ours = append(ours, m.slope(b, command, metric))
					bare = append(bare, m.bare(b, metric))
					for k, theirs := range []*[]cost{&official, &batched} {
						c, remark := ask(metric + " " + peers[k])
						if remarks[k] = remark; c.wall > 0 {
							*theirs = append(*theirs, c)
						}
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1/middle(ours, cost.seconds), "images/s")
			b.ReportMetric(over(ours, bare, cost.seconds), "bare")
			b.ReportMetric(over(ours, bare, cost.processing), "bare-processor")
			text := fmt.Sprintf("%s: %.3g images/s (%s ms an image, %s of the processor), %.3f × the bare "+
				"passes' time, %.3f × their processor time", metric, 1/middle(ours, cost.seconds),
				spread(ours, cost.seconds), spread(ours, cost.processing), over(ours, bare, cost.seconds),
				over(ours, bare, cost.processing))
			for k, theirs := range [][]cost{official, batched} {
				name := peers[k]
				if theirs == nil {
					text += fmt.Sprintf("\n%s: skipped: %s", name, remarks[k])
					continue
				}
				b.ReportMetric(over(theirs, ours, cost.seconds), "×"+name)
				text += fmt.Sprintf("\n%s: %.3g images/s (%s ms, %s of the processor); ours %.2f × as "+
					"fast, %.2f by processor time; %s", name, 1/middle(theirs, cost.seconds),
					spread(theirs, cost.seconds), spread(theirs, cost.processing),
					over(theirs, ours, cost.seconds), over(theirs, ours, cost.processing), remarks[k])
			}
			b.Log(text)
		})
	}
	if m.metrics == nil {
		b.Run("gae-method", func(b *testing.B) {
			var ours, bare []cost
			for b.Loop() {
				for range metricRounds {
					with, without := m.slope(b, command, "gae-method"), m.slope(b, command, "gae")
					ours = append(ours, cost{with.wall - without.wall, with.processor - without.processor})
					bare = append(bare, m.bare(b, "gae-method"))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(over(ours, bare, cost.seconds), "bare")
			b.ReportMetric(over(ours, bare, cost.processing), "bare-processor")
			b.Logf("a method more in GAE: %s ms a mosaic, %s of the processor; %.3f × the bare passes of "+
				"its twenty attributions, %.3f × by processor time", spread(ours, cost.seconds),
				spread(ours, cost.processing), over(ours, bare, cost.seconds),
				over(ours, bare, cost.processing))
		})
	}
}

// cost is in seconds.
type cost struct{ wall, processor float64 }

func (c cost) seconds() float64    { return c.wall }
func (c cost) processing() float64 { return c.processor }

// slope returns the cost of an image between two runs of the command.
func (m metricBench) slope(b *testing.B, command, metric string) cost {
	few, many := m.execute(b, command, metric, m.few), m.execute(b, command, metric, m.many)
	n := float64(m.many - m.few)
	return cost{(many.wall - few.wall) / n, (many.processor - few.processor) / n}
}

// experiments are the stages of each metric.
var experiments = map[string]string{
	"mas-rise": `
  insertion: {uses: perturb/insertion, in: {model: model, images: images, maps: maps}, with: {STEPS}}
  deletion:  {uses: perturb/deletion, in: {model: model, images: images, maps: maps}, with: {STEPS}}
  rise:      {uses: score/rise, in: {insertion: insertion, deletion: deletion}}
  monotone:  {uses: score/rise, in: {insertion: insertion, deletion: deletion}, with: {variant: official}}
  mas:       {uses: score/mas, in: {insertion: insertion, deletion: deletion, maps: maps}}
`,
	"ablation": `
  curves: {uses: perturb/ablation, in: {model: model, images: images, maps: maps}}
  auc:    {uses: score/auc, in: {curves: curves}}
`,
	"road": `
  curves: {uses: perturb/road, in: {model: model, images: images, maps: maps}}
  auc:    {uses: score/auc, in: {curves: curves}}
`,
	"pic": `
  curves: {uses: perturb/pic, in: {model: model, images: images, maps: maps}}
  pic:    {uses: score/pic, in: {curves: curves, lengths: curves.lengths}}
`,
	"gae": `
  guess:   {uses: model/predict, in: {model: model, images: images}}
  mosaics: {uses: mosaic/gae, in: {model: model, images: images, targets: guess.targets}}
  masking:
    uses: perturb/gradient-masking
    in: {model: model, images: mosaics.positives, targets: mosaics.targets}
  masked:
    uses: perturb/masked
    matrix: [step]
    in: {model: model, images: mosaics.positives, removals: {order: {morf: masking.morf, lerf: masking.lerf}}}
    with: {step: "${step}"}
    store: none
  method-maps:
    uses: "${method}"
    matrix: [method]
    in: {model: model, images: mosaics.positives, targets: mosaics.targets}
  masked-maps:
    uses: "${method}"
    matrix: [method]
    in: {model: model, images: masked, targets: mosaics.targets}
    store: none
  mosaic-maps:
    uses: "${method}"
    matrix: [method]
    in: {model: model, images: mosaics, targets: mosaics.targets}
  gae:
    uses: score/gae
    in:
      maps: method-maps
      masked_maps: masked-maps
      mosaic_maps: mosaic-maps
      outputs: masking.outputs
      impact: masking.impact
      scoring: mosaics.scoring
    over: [order, step]
`,
}

// A subsetMetric is a metric of replaced subsets: the parameters of perturb/subset and of the score, and the
// forward passes of an image of 64×64 pixels.
type subsetMetric struct {
	subset, score string
	passes        int
}

var subsetMetrics = map[string]subsetMetric{
	"faithfulness-correlation": {"samples: 100, sizes: [224]", "", 102},
	"faithfulness-estimate":    {"draw: single, unit: region, region: 4", "", 258},
	"infidelity": {
		"draw: single, unit: region, region: 4", "output: logit, map: contribution", 258},
	"monotonicity-correlation": {
		"draw: single, unit: region, region: 16, substrate: random, repeats: 100", "", 1602},
	"mu-fidelity":     {"draw: bernoulli, p: 0.2, samples: 200, unit: region, region: 8", "", 202},
	"non-sensitivity": {"draw: single, unit: region, region: 4", "", 258},
	"sensitivity-n":   {"samples: 100, shares: [0.001, 0.004, 0.015, 0.055, 0.21, 0.8]", "", 602},
}

// stagesOf returns the stages of a metric.
func stagesOf(metric string) string {
	m, ok := subsetMetrics[metric]
	if !ok {
		return experiments[metric]
	}
	return fmt.Sprintf(`
  subset: {uses: perturb/subset, in: {model: model, images: images}, with: {%s}}
  score:  {uses: score/%s, in: {maps: maps, subsets: subset}, with: {%s}}
`, m.subset, metric, m.score)
}

// execute runs the command on an experiment in a new store. GAE counts mosaics, of four images each.
func (m metricBench) execute(b *testing.B, command, metric string, images int) cost {
	name, axes := metric, ""
	maps := "  maps: {uses: attribute/random, in: {model: model, images: images}, with: {reduce: abs-sum}}"
	if gae, ok := strings.CutSuffix(metric, "-method"); ok || metric == "gae" {
		name, maps, images = gae, "", 4*images
		axes = "axes:\n  step: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n" +
			"  method:\n    saliency: {uses: attribute/saliency}\n"
		if ok {
			axes += "    guided-backprop: {uses: attribute/guided-backprop}\n"
		}
	}
	text := fmt.Sprintf("name: metric\ntitle: What does a metric cost?\n%sstages:\n"+
		"  images: {uses: dataset/shapes, with: {count: %d, size: %d}}\n"+
		"  model: {uses: model/onnx, with: {path: %q, preset: %s, size: %d}}\n%s%spublish: []\n", axes,
		images, m.size, m.path, m.preset, m.size, maps,
		strings.ReplaceAll(stagesOf(name), "STEPS", fmt.Sprint("steps: ", m.steps)))
	dir := b.TempDir()
	file := filepath.Join(dir, "metric.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(command, "run", file, "--quiet", "--store", filepath.Join(dir, "store"), "--out",
		filepath.Join(dir, "out"))
	cmd.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", threads()))
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	spent := cost{time.Since(start).Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	return spent
}

// bare returns the cost of an image of the passes that a metric needs, by a worker a thread.
func (m metricBench) bare(b *testing.B, metric string) cost {
	data := modeltest.Model(b, model.ONNXParams{Path: m.path, Preset: m.preset,
		Size: picture.Size{H: m.size, W: m.size}})
	n := modeltest.Net(b, data)
	const batch = 16 // of the command
	var runs []func() error
	slots := stagetest.NewWorkers(threads())
	images := max(2, m.many/16) // a slot
	for _, slot := range slots {
		var one func() error // an image's passes
		switch metric {
		case "mas-rise", "ablation":
			points, curves := m.steps+1, 2
			if metric == "ablation" {
				points, curves = 11, 1
			}
			c, err := n.Curve(b.Context(), slot, n.Fit(points, batch))
			if err != nil {
				b.Fatal(err)
			}
			one = func() error {
				for k := range curves * ((points + c.Batch - 1) / c.Batch) {
					if err := c.Run(b.Context(), []int{k}); err != nil {
						return err
					}
				}
				return nil
			}
		case "road", "pic", "faithfulness-correlation", "faithfulness-estimate", "infidelity",
			"monotonicity-correlation", "mu-fidelity", "non-sensitivity", "sensitivity-n":
			// as many passes as on average, since images share batches
			points := cmp.Or(map[string]int{"road": 8, "pic": 15}[metric], subsetMetrics[metric].passes)
			f, err := n.Forward(b.Context(), slot, n.Fit(points*batch, batch))
			if err != nil {
				b.Fatal(err)
			}
			due := 0
			one = func() error {
				for due += points; due > 0; due -= f.Batch {
					if err := f.Run(b.Context()); err != nil {
						return err
					}
				}
				return nil
			}
		default: // gradients: 21 for masking and 22 for the maps, or those of a method
			rules, passes := relevance.Derivative(), 43
			if metric == "gae-method" {
				rules, passes = relevance.Guided(), 22
			}
			g, err := n.Gradient(b.Context(), slot, lower.Question{Rules: rules}, batch)
			if err != nil {
				b.Fatal(err)
			}
			for i := range g.Batch {
				g.Explain(i, program.Target{Class: 0, Minus: -1})
			}
			due := 0
			one = func() error {
				for due += passes; due > 0; due -= g.Batch {
					if err := g.Run(b.Context()); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if err := one(); err != nil { // the first run allocates
			b.Fatal(err)
		}
		runs = append(runs, func() error {
			for range images {
				if err := one(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	start, before := time.Now(), processor(b)
	p := pool.New().WithErrors()
	for _, run := range runs {
		p.Go(run)
	}
	if err := p.Wait(); err != nil {
		b.Fatal(err)
	}
	count := float64(images * len(slots))
	spent := cost{time.Since(start).Seconds() / count, (processor(b) - before) / count}
	stagetest.Release(slots...)
	return spent
}

// startTorch returns what asks PyTorch, in a process of its own, for the cost of an image, and its remark; 0
// and why if it can't tell.
func (m metricBench) startTorch(b *testing.B) func(question string) (cost, string) {
	b.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	cmd := exec.Command(python, "-W", "ignore", filepath.Join("testdata", "metrics.py"), "time", m.name,
		strconv.Itoa(m.steps), strconv.Itoa(threads()))
	var said strings.Builder
	cmd.Stderr = &said
	questions, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	gone := func(string) (cost, string) {
		return cost{}, "it isn't there: " + strings.TrimSpace(said.String())
	}
	if err := cmd.Start(); err != nil {
		return func(string) (cost, string) { return cost{}, err.Error() }
	}
	b.Cleanup(func() {
		questions.Close()
		_ = cmd.Wait() // it was heard
	})
	lines := bufio.NewScanner(answers)
	if !lines.Scan() {
		_ = cmd.Wait()
		return gone
	}
	return func(question string) (c cost, remark string) {
		io.WriteString(questions, question+"\n")
		if !lines.Scan() {
			return gone(question)
		}
		parts := strings.SplitN(lines.Text(), " ", 3)
		if len(parts) < 2 {
			return c, lines.Text()
		}
		if _, err := fmt.Sscan(parts[0], &c.wall); err != nil {
			return cost{}, lines.Text()
		}
		if _, err := fmt.Sscan(parts[1], &c.processor); err != nil {
			return cost{}, lines.Text()
		}
		return c, strings.Join(parts[2:], " ")
	}
}

func threads() int { return min(2, runtime.GOMAXPROCS(0)) }

func middle(costs []cost, of func(cost) float64) float64 {
	var s []float64
	for _, c := range costs {
		s = append(s, of(c))
	}
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// over returns the median of ratios round by round.
func over(costs, base []cost, of func(cost) float64) float64 {
	var ratios []cost
	for k := range min(len(costs), len(base)) {
		ratios = append(ratios, cost{wall: of(costs[k]) / of(base[k])})
	}
	return middle(ratios, cost.seconds)
}

// spread writes milliseconds: median (least to most).
func spread(costs []cost, of func(cost) float64) string {
	least, most := of(costs[0]), of(costs[0])
	for _, c := range costs {
		least, most = min(least, of(c)), max(most, of(c))
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", 1000*middle(costs, of), 1000*least, 1000*most)
}

package attribute_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
	"github.com/sourcegraph/conc/pool"
)

const (
	methodsBatch  = 8
	methodsRounds = 3
)

// evaluations are what methods with a number of steps are set to, here and in captum; other parameters are
// the defaults.
var evaluations = map[string]struct {
	n      int
	fields map[string]any
}{
	"integrated-gradients": {16, map[string]any{"Steps": 16}},
	"expected-gradients":   {16, map[string]any{"Samples": 16}},
	"idgi":                 {16, map[string]any{"Steps": 16}},
	"idg":                  {16, map[string]any{"Steps": 16}},
	"blur-ig":              {16, map[string]any{"Steps": 15}},
	"smoothgrad":           {8, map[string]any{"Samples": 8}},
	"occlusion":            {32, map[string]any{"Window": picture.Square(32), "Stride": picture.Square(32)}},
	"feature-ablation":     {56, map[string]any{"Region": 56}},
	"kernel-shap":          {64, map[string]any{"Region": 56, "Samples": 31}}, // pairs, and both ends
	"lime":                 {64, map[string]any{"Region": 56, "Samples": 62}}, // and both ends
	"shapley-sampling":     {4, map[string]any{"Region": 56, "Samples": 4}},
}

// BenchmarkMethods measures every method that asks a model, on the shapes of ResNet-50 and ViT-B/16: images a
// second of the whole stage, from encoded images to encoded maps, with its programs loaded, by a worker a
// core; how many of ONNX Runtime's own forward passes that is; for methods that take the gradient several
// times, how many times as long as that many gradients of the same batch; and captum's best of batches of 1,
// 8 and 32 on the same threads. Of methods that solve the responses of perturb/subset, its passes are part of
// the time. One run of each makes a round; medians of rounds are reported. METHODS and NETS, if set, name the
// methods and nets to measure, with commas between.
func BenchmarkMethods(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	nets := cmp.Or(os.Getenv("NETS"), "resnet50,vit_b_16")
	for name := range strings.SplitSeq(nets, ",") {
		path := filepath.Join(root, ".bench", name+".onnx")
		b.Run(name, func(b *testing.B) {
			if _, err := os.Stat(path); err != nil {
				b.Skipf("skipped: there is no %s, which stages/internal/program/testdata/shapes.py writes",
					path)
			}
			benchMethods(b, name, path)
		})
	}
}

func benchMethods(b *testing.B, name, path string) {
	data := modeltest.Model(b, model.ONNXParams{Path: path, Preset: "unit",
		Size: picture.Size{H: 224, W: 224}})
	forward := bareForward(b, path)
	ask := startCaptum(b, name)
	slots := stagetest.NewWorkers(threads())
	for _, s := range registry.Builtin().Family("attribute") {
		method, ok := strings.CutPrefix(s.Name, "attribute/")
		port := s.Input("model")
		wanted := os.Getenv("METHODS")
		if !ok || port == nil || port.Optional || wanted != "" &&
			!slices.Contains(strings.Split(wanted, ","), method) {
			continue
		}
		b.Run(method, func(b *testing.B) { benchMethod(b, s, data, slots, forward, ask) })
	}
}

func benchMethod(b *testing.B, s *stages.Stage, data stages.Data, slots []stages.Slot, forward func() float64,
	ask func(string) (float64, string)) {
	method := strings.TrimPrefix(s.Name, "attribute/")
	params := s.NewParams()
	for field, v := range evaluations[method].fields {
		set(b, params, field, v)
	}
	load := func(count int) (seconds float64) { // the programs, slot by slot
		for _, slot := range slots {
			var err error
			if seconds, err = timed(b, s, params, data, []stages.Slot{slot}, count/len(slots)); err != nil {
				b.Skipf("skipped: %v", err)
			}
		}
		return seconds
	}
	count := methodsBatch
	if load(count) > 4 { // slow methods run the same batch after batch for each image
		count = len(slots)
		load(count)
	}
	gradients := 0
	if slices.Contains([]string{"integrated-gradients", "smoothgrad"}, method) {
		gradients = evaluations[method].n
	}
	if gradients > 0 {
		saliency(b, data, slots) // which loads its program
	}
	var ours, bare, gradient, theirs []float64
	note := ""
	for b.Loop() {
		for range methodsRounds {
			seconds, err := timed(b, s, params, data, slots, count)
			if err != nil {
				b.Fatal(err)
			}
			ours, bare = append(ours, seconds), append(bare, forward())
			if gradients > 0 {
				gradient = append(gradient, saliency(b, data, slots))
			}
			t, said := ask(fmt.Sprintf("%s %d", method, evaluations[method].n))
			if note = said; t > 0 {
				theirs = append(theirs, t)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1/median(ours), "images/s")
	b.ReportMetric(median(ours)/median(bare), "forwards")
	text := fmt.Sprintf("%s: %.3g images/s (%.3g to %.3g ms an image), %.3g forward passes", method,
		1/median(ours), 1000*slices.Min(ours), 1000*slices.Max(ours), median(ours)/median(bare))
	if gradients > 0 {
		ratio := median(ours) / float64(gradients) / median(gradient)
		b.ReportMetric(ratio, "×gradients")
		text += fmt.Sprintf(", %.3f × as long as %d gradients", ratio, gradients)
	}
	if theirs == nil {
		b.Logf("%s; captum: %s", text, note)
		return
	}
	b.ReportMetric(median(theirs)/median(ours), "×captum")
	b.Logf("%s; captum, batch %s: %.3g images/s (%.3g to %.3g ms); ours %.2f × as fast", text, note,
		1/median(theirs), 1000*slices.Min(theirs), 1000*slices.Max(theirs), median(theirs)/median(ours))
}

// saliency returns the seconds an image of a batch of gradients.
func saliency(b *testing.B, data stages.Data, slots []stages.Slot) float64 {
	b.Helper()
	seconds, err := timed(b, &attribute.Saliency, attribute.Saliency.NewParams(), data, slots, methodsBatch)
	if err != nil {
		b.Fatal(err)
	}
	return seconds
}

// timed returns the seconds an image of a stage that slots share so many images of.
func timed(b *testing.B, s *stages.Stage, params any, data stages.Data, slots []stages.Slot,
	count int) (float64, error) {
	b.Helper()
	var all []*stages.Env
	for _, slot := range slots {
		e, err := stagetest.Env(s, methodInputs(data, count/len(slots)))
		if err != nil {
			return 0, err
		}
		e.Slot, e.Batch = slot, methodsBatch
		all = append(all, e)
	}
	start := time.Now()
	p := pool.New().WithErrors()
	for _, e := range all {
		p.Go(func() error {
			if s.Input("subsets") != nil {
				if err := replaceSubsets(b, params, e); err != nil {
					return err
				}
			}
			return s.Run(b.Context(), params, e)
		})
	}
	err := p.Wait()
	return time.Since(start).Seconds() / float64(count), err
}

// replaceSubsets runs perturb/subset as a method implies it, and gives the method the results.
func replaceSubsets(b *testing.B, params any, e *stages.Env) error {
	s, _ := registry.Builtin().Lookup("perturb/subset")
	with := s.NewParams()
	from, to := reflect.ValueOf(params).Elem(), reflect.ValueOf(with).Elem()
	for i := range to.NumField() {
		if f := from.FieldByName(to.Type().Field(i).Name); f.IsValid() {
			to.Field(i).Set(f)
		}
	}
	in := map[string][]stages.Data{}
	for _, port := range []string{"model", "images", "targets"} {
		in[port] = e.Ports[port]
	}
	subset, err := stagetest.Env(s, in)
	if err != nil {
		return err
	}
	subset.Slot, subset.Batch = e.Slot, e.Batch
	if err := s.Run(b.Context(), with, subset); err != nil {
		return err
	}
	made := map[string][][]byte{}
	for _, o := range subset.Outputs {
		made[o.Port] = append(made[o.Port], o.Data)
	}
	facts := stages.Facts{"responses": "probability,logit,correct", "draw": "", "repeats": "1"}
	for to, from := range map[string]string{"subsets": "subsets", "responses": "responses",
		"units": "segments"} {
		in[to] = []stages.Data{stagetest.Items(facts, made[from]...)}
	}
	slot, batch := e.Slot, e.Batch
	solver, err := stagetest.Env(e.Stage, in)
	if err != nil {
		return err
	}
	*e = *solver
	e.Slot, e.Batch = slot, batch
	return nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// methodInputs returns a model and noisy images whose class 0 is explained.
func methodInputs(data stages.Data, count int) map[string][]stages.Data {
	r := rand.New(rand.NewPCG(1, 2))
	var images, targets [][]byte
	for range count {
		pixels := make([]uint8, 3*224*224)
		for i := range pixels {
			pixels[i] = uint8(r.IntN(256))
		}
		images = append(images, stages.NewTensor(pixels, 3, 224, 224).Encode())
		targets = append(targets, stages.NewTensor([]int64{0}, 1).Encode())
	}
	background := stages.Tensor{DType: stages.U8, Shape: []int{8, 3, 224, 224},
		Raw: make([]byte, 8*3*224*224)}
	for k := range background.Raw {
		background.Raw[k] = uint8(r.IntN(256))
	}
	return map[string][]stages.Data{
		"background": {stagetest.Value(nil, background.Encode())},
		"model":      {data}, "images": {stagetest.Items(nil, images...)}, "targets": {stagetest.Items(nil,
			targets...)},
	}
}

// bareForward returns a timed run of a net's file as it is, in seconds an image.
func bareForward(b *testing.B, path string) func() float64 {
	b.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	r := modeltest.Runtime(b)
	s, err := r.NewSession(file, []string{"input"}, []string{"logits"},
		stages.Device{Class: "cpu", Threads: threads()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	in, err := ort.NewTensor[float32](r, methodsBatch, 3, 224, 224)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close() })
	out, err := ort.NewTensor[float32](r, methodsBatch, 1000)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { out.Close() })
	return func() float64 {
		start := time.Now()
		if err := s.Run(b.Context(), []ort.Value{in}, []ort.Value{out}); err != nil {
			b.Fatal(err)
		}
		return time.Since(start).Seconds() / methodsBatch
	}
}

// startCaptum returns what asks captum, in a process of its own, for its seconds an image, and the batch it
// took; 0 and why if it can't tell.
func startCaptum(b *testing.B, name string) func(method string) (float64, string) {
	b.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	shapes := filepath.Join(root, "stages", "internal", "program", "testdata", "shapes.py")
	cmd := exec.Command(python, "-W", "ignore", filepath.Join("testdata", "captum_times.py"), shapes, name,
		strconv.Itoa(threads()))
	var said strings.Builder
	cmd.Stderr = &said
	question, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	gone := func(string) (float64, string) { return 0, "it isn't there: " + strings.TrimSpace(said.String()) }
	if err := cmd.Start(); err != nil {
		return func(string) (float64, string) { return 0, err.Error() }
	}
	b.Cleanup(func() {
		question.Close()
		_ = cmd.Wait() // it was heard
	})
	lines := bufio.NewScanner(answers)
	if !lines.Scan() {
		return gone
	}
	return func(method string) (float64, string) {
		io.WriteString(question, method+"\n")
		if !lines.Scan() {
			return gone(method)
		}
		number, rest, _ := strings.Cut(lines.Text(), " ")
		seconds, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, rest
		}
		return seconds, rest
	}
}

func threads() int { return min(2, runtime.NumCPU()) }

// set sets a field of a parameter struct, wherever it's embedded.
func set(b *testing.B, params any, field string, v any) {
	b.Helper()
	f := reflect.ValueOf(params).Elem().FieldByName(field)
	if !f.IsValid() {
		b.Fatalf("%T has no field %s", params, field)
	}
	f.Set(reflect.ValueOf(v))
}

package attribute_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
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

const methodsBatch = 8

// evaluations are what methods with a number of steps are set to, here and in peers; other parameters are
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
// times, how many times as long as that many gradients of the same batch; and peers' best of batches of 1, 8
// and 32 on the same threads, beside the ratio of their bare forward passes. Of methods that solve the
// responses of perturb/subset, its passes are part of the time. A round runs the method before each peer and
// once more for the rest; there are as many as -benchtime says. Medians are reported, of ratios those within
// a round. METHODS, NETS and PEERS, if set, name the methods, nets and peers to measure, with commas between.
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
	peers := startPeers(b, name)
	slots := stagetest.NewWorkers(threads())
	for _, s := range registry.Builtin().Family("attribute") {
		method, ok := strings.CutPrefix(s.Name, "attribute/")
		port := s.Input("model")
		if !ok || port == nil || port.Optional || !wanted("METHODS", method) {
			continue
		}
		b.Run(method, func(b *testing.B) { benchMethod(b, s, data, slots, forward, peers) })
	}
}

// wanted reports whether an environment variable names something, or isn't set.
func wanted(variable, name string) bool {
	list := os.Getenv(variable)
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

func benchMethod(b *testing.B, s *stages.Stage, data stages.Data, slots []stages.Slot, forward func() float64,
	peers []*peer) {
	method := strings.TrimPrefix(s.Name, "attribute/")
	params := s.NewParams()
	for field, v := range evaluations[method].fields {
		set(b, params, field, v)
	}
	count, slow := loadMethod(b, s, params, data, slots)
	gradients := 0
	if slices.Contains([]string{"integrated-gradients", "smoothgrad"}, method) {
		gradients = evaluations[method].n
		saliency(b, data, slots) // which loads its program
	}
	own := func() float64 {
		seconds, err := timed(b, s, params, data, slots, count)
		if err != nil {
			b.Fatal(err)
		}
		return seconds
	}
	var ours, forwards, gradient []float64
	against := races(b, peers, fmt.Sprintf("%s %d", method, evaluations[method].n))
	for b.Loop() {
		if slow && ours != nil {
			continue
		}
		for _, r := range against {
			t := own()
			ours = append(ours, t)
			r.run(b, t, forward)
		}
		t := own()
		ours, forwards = append(ours, t), append(forwards, t/forward())
		if gradients > 0 {
			gradient = append(gradient, t/float64(gradients)/saliency(b, data, slots))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1/median(ours), "images/s")
	b.ReportMetric(median(forwards), "forwards")
	b.Logf("%s: %.3g images/s (%.3g to %.3g ms an image), %.3g forward passes", method, 1/median(ours),
		1000*slices.Min(ours), 1000*slices.Max(ours), median(forwards))
	if gradients > 0 {
		b.ReportMetric(median(gradient), "×gradients")
		b.Logf("%.3f × as long as %d gradients", median(gradient), gradients)
	}
	for _, r := range against {
		r.report(b)
	}
}

// slowMethod is the seconds an image above which a method runs on few images.
const slowMethod = 4

// loadMethod loads a method's programs, slot by slot, and returns the number of images to time, and whether
// the method is so slow that one round has to do.
func loadMethod(b *testing.B, s *stages.Stage, params any, data stages.Data, slots []stages.Slot) (count int,
	slow bool) {
	load := func(count int) (seconds float64) {
		for _, slot := range slots {
			var err error
			if seconds, err = timed(b, s, params, data, []stages.Slot{slot}, count/len(slots)); err != nil {
				b.Skipf("skipped: %v", err)
			}
		}
		return seconds
	}
	seconds := load(len(slots))
	if seconds > slowMethod && seconds < 5*slowMethod {
		seconds = load(len(slots)) // without compilation
	}
	if seconds > slowMethod { // slow methods run the same batch after batch for each image
		return len(slots), seconds > 5*slowMethod
	}
	load(methodsBatch)
	return methodsBatch, false
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

package parity

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A world is what stages of one net read.
type world struct {
	net   string
	cpu   stages.Slot
	given map[stages.Type]stages.Data
	ports map[string]stages.Data // by stage and port, where the type alone doesn't do
}

// The images' side, and how many there are.
const side, count = 32, 2

// few are parameters that say how often a program runs: seldom, since an adapter in software takes as long
// for a net of 32×32 pixels as a real one for one of 224×224.
var few = map[string]any{
	"steps": 4, "samples": 4, "masks": 4, "evaluations": 16, "classes": 2, "window": picture.Square(16),
	"stride": picture.Square(16), "shares": []float64{0.2, 0.6}, "limit": 4, "positive": "likelihood",
}

// declared are the parameters of stages that take them from a method, of which none is known here.
var declared = map[string]map[string]any{"score/completeness": {"reference": "zero", "output": "logit"}}

func newWorld(t *testing.T, net string) *world {
	t.Helper()
	w := worldOf(t, net, model.ONNXParams{Path: modeltest.OfficialPath(t, net), Preset: "unit",
		Size: picture.Square(side)}, "dataset/shapes", map[string]any{"count": count, "size": side})
	// The map keeps what is positive, and of the likeliest class nothing is at any patch.
	w.ports["attribute/grad-eclip targets"] = w.made(t, "model/predict",
		map[string]any{"target": "predicted:10"})("targets")
	return w
}

// worldOf returns the world of a net, on the images of a data set.
func worldOf(t *testing.T, net string, p model.ONNXParams, set string, of map[string]any) *world {
	t.Helper()
	w := &world{net: net, cpu: stagetest.NewSlot(), given: map[stages.Type]stages.Data{},
		ports: map[string]stages.Data{}}
	t.Cleanup(func() { stagetest.Release(w.cpu) })
	w.given[stages.Model] = modeltest.Model(t, p)
	w.add(t, set, of, "images", "labels")
	w.given[stages.Images] = noisy(w.given[stages.Images])
	w.add(t, "model/predict", nil, "targets")
	w.add(t, "attribute/saliency", nil, "maps")
	w.add(t, "maps/rank", nil, "ranks")
	w.add(t, "perturb/segments", nil, "segments")
	w.add(t, "perturb/pic-ends", nil, "mask", "ends")
	w.add(t, "dataset/background", nil, "background")
	whole := w.made(t, "perturb/response", nil)("curves")
	w.ports["perturb/soft-mask whole"], w.ports["score/completeness whole"] = whole, whole
	w.ports["model/change other"] = w.made(t, "perturb/noise", nil)("images")
	// A mosaic is of four images, whose classes differ.
	w.ports["mosaic/gae images"] = repeated(w.given[stages.Images], 4)
	w.ports["mosaic/gae targets"], w.ports["mosaic/gae labels"] = classes(4), classes(4)
	return w
}

// add runs a stage on the processor, and gives what it makes to those that read such ports.
func (w *world) add(t *testing.T, name string, params map[string]any, ports ...string) {
	t.Helper()
	made := w.made(t, name, params)
	s, _ := registry.Builtin().Lookup(name)
	for _, port := range ports {
		w.given[s.Output(port).Type] = made(port)
	}
}

// made runs a stage on the processor, and returns what it makes by port.
func (w *world) made(t *testing.T, name string, params map[string]any) func(port string) stages.Data {
	t.Helper()
	s, ok := registry.Builtin().Lookup(name)
	if !ok {
		t.Fatalf("no stage is called %s", name)
	}
	p := w.params(s)
	set(p, params)
	r, err := stagetest.TryOn(w.cpu, *s, p, w.in(s))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return func(port string) stages.Data { return stagetest.Items(r.Facts[port], r.Payloads[port]...) }
}

// params returns the parameters of a stage for few runs.
func (w *world) params(s *stages.Stage) any {
	p := s.NewParams()
	set(p, few)
	set(p, declared[s.Name])
	return p
}

// set sets the parameters that a stage has.
func set(params any, values map[string]any) {
	for _, f := range stages.Fields(params) {
		if v, ok := values[f.Name]; ok {
			field := reflect.ValueOf(params).Elem().FieldByIndex(f.Index)
			if reflect.TypeOf(v).AssignableTo(field.Type()) {
				field.Set(reflect.ValueOf(v))
			}
		}
	}
}

// in returns what a stage's ports read.
func (w *world) in(s *stages.Stage) map[string][]stages.Data {
	in := map[string][]stages.Data{}
	for _, port := range s.Inputs {
		d, ok := w.ports[s.Name+" "+port.Name]
		if !ok {
			d, ok = w.given[port.Type]
		}
		// Baselines and substrates are a parameter's.
		if ok && (!port.Optional || port.Type != stages.Images) {
			in[port.Name] = []stages.Data{d}
		}
	}
	return in
}

// repeated returns n items of d, which has fewer.
func repeated(d stages.Data, n int) stages.Data {
	var payloads [][]byte
	for i := range n {
		b, err := d.Load(i % d.Items.Len())
		if err != nil {
			panic(err) // unreachable: they are in memory
		}
		payloads = append(payloads, b)
	}
	return stagetest.Items(d.Facts, payloads...)
}

// classes returns n items of as many classes.
func classes(n int64) stages.Data {
	var payloads [][]byte
	for class := range n {
		payloads = append(payloads, stages.NewTensor([]int64{class}, 1).Encode())
	}
	return stagetest.Items(nil, payloads...)
}

// noisy returns images with noise on every value: where neighbouring values are equal, rounding alone decides
// which of them is the largest of a pool.
func noisy(d stages.Data) stages.Data {
	r := rand.New(rand.NewPCG(1, 2))
	var payloads [][]byte
	for i := range d.Items.Len() {
		b, err := d.Load(i)
		if err != nil {
			panic(err) // unreachable: they are in memory
		}
		x, err := stages.DecodeTensor(b)
		if err != nil {
			panic(err) // unreachable: dataset/shapes made it
		}
		pixels := slices.Clone(x.Raw)
		for k := range pixels {
			pixels[k] = byte(min(255, int(pixels[k])+r.IntN(64)))
		}
		payloads = append(payloads, stages.NewTensor(pixels, x.Shape...).Encode())
	}
	return stagetest.Items(d.Facts, payloads...)
}

package attribute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/ort"
)

// A CheckedFile is how a compiled file runs under ONNX Runtime on the processor.
type CheckedFile struct {
	Images int
	Own    FileDeviation // with the library's optimisations that the method's own programs have
	Usual  FileDeviation // with all of the library's optimisations, some of which round otherwise
	Model  float64       // seconds that the model alone takes for an image, 0 if it isn't fed float
	File   float64       // and the file, with all optimisations
}

// A FileDeviation is the largest deviation of a value of a file's map from the method's, as a share of the
// largest magnitude of that.
type FileDeviation struct {
	Share float64
	Image int // with it
}

// drawnImages is the number of images that are drawn where none are given.
const drawnImages = 4

// Drawn returns payloads of images: smooth colours with some noise.
func Drawn(s modelfile.Spec) (payloads [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for range drawnImages {
		v := make([]uint8, 0, 3*s.Height*s.Width)
		for range 3 {
			base, down, across := 255*r.Float64(), 6*r.Float64(), 6*r.Float64()
			for i := range s.Height * s.Width {
				y, x := float64(i/s.Width)/float64(s.Height), float64(i%s.Width)/float64(s.Width)
				wave := 60 * math.Sin(down*y*math.Pi) * math.Cos(across*x*math.Pi)
				v = append(v, uint8(min(max(base+wave+20*r.NormFloat64(), 0), 255)))
			}
		}
		payloads = append(payloads, stages.NewTensor(v, 3, s.Height, s.Width).Encode())
	}
	return payloads
}

// Check runs a compiled file beside the method on images, payloads of the port images; on drawn ones if there
// are none.
func Check(ctx context.Context, c Compilation, file Compiled, images [][]byte) (out CheckedFile, err error) {
	e := &stages.Env{Stage: c.Stage, Slot: c.Slot, Batch: 2, Seed: c.Seed,
		Ports: map[string][]stages.Data{"model": {c.Model}}, OnWarn: func(stages.Warning) {}}
	n, err := program.Load(e)
	if err != nil {
		return out, err
	}
	if len(images) == 0 {
		images = Drawn(n.Spec)
	}
	batch := file.Batch
	if batch == 0 {
		batch = n.Fit(2, 2)
	}
	for len(images)%batch != 0 { // the file takes whole batches
		images = append(images, images[len(images)-1])
	}
	k := &checking{Compilation: c, ctx: ctx, env: e, net: n, file: file, images: images, batch: batch}
	if err := k.answers(); err != nil {
		return out, err
	}
	want, err := k.maps()
	if err != nil {
		return out, err
	}
	for _, usual := range []bool{false, true} {
		got, seconds, err := k.run(usual)
		if err != nil {
			return out, err
		}
		worst := &out.Own
		if usual {
			worst, out.File = &out.Usual, seconds
		}
		for i := range want {
			if d := deviates(got[i], want[i]); !(d <= worst.Share) {
				*worst = FileDeviation{d, i}
			}
		}
	}
	if out.Model, err = k.bare(); err != nil {
		return out, err
	}
	out.Images = len(images)
	return out, nil
}

// deviates returns the largest deviation of values, as a share of the largest magnitude in want.
func deviates(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	largest, most := 0.0, 0.0
	for i, w := range want {
		g, w := float64(got[i]), float64(w)
		if math.IsNaN(g) != math.IsNaN(w) {
			return math.Inf(1)
		}
		largest = math.Max(largest, math.Abs(w))
		if d := math.Abs(g - w); d > most {
			most = d
		}
	}
	if most == 0 {
		return 0
	}
	return most / largest
}

// A checking is a call of [Check].
type checking struct {
	Compilation
	ctx     context.Context
	env     *stages.Env
	net     *program.Net
	file    Compiled
	images  [][]byte
	batch   int
	targets []program.Target
}

// answers finds the explained class of each image.
func (k *checking) answers() error {
	f, err := k.net.Forward(k.ctx, k.Slot, k.batch)
	if err != nil {
		return err
	}
	x, err := (&emission{Compilation: k.Compilation}).expression()
	if err != nil {
		return err
	}
	for from := 0; from < len(k.images); from += f.Batch {
		rows := min(f.Batch, len(k.images)-from)
		for row := range rows {
			t, err := stages.DecodeTensor(k.images[from+row])
			if err == nil {
				err = k.net.Normalise(t, f.Image(row))
			}
			if err != nil {
				return err
			}
		}
		if err := f.Run(k.ctx); err != nil {
			return err
		}
		for row := range rows {
			t := program.Target{Class: (from + row) % k.net.Classes, Minus: -1}
			if !k.TargetInput {
				if t, err = x.Target(f.Row(row), nil, k.net.Classes); err != nil {
					return err
				}
			}
			k.targets = append(k.targets, t)
		}
	}
	return nil
}

// fastest returns the seconds of the fastest of some runs.
func fastest(run func() error) (float64, error) {
	best := math.Inf(1)
	for range 4 {
		start := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start).Seconds())
	}
	return best, nil
}

// bare returns the seconds that the model alone takes for an image.
func (k *checking) bare() (seconds float64, err error) {
	names, err := namesIn(k.net, k.Compilation)
	if err != nil || names.fed.Elem != onnxpb.TensorProto_FLOAT {
		return 0, err
	}
	file, err := k.net.Original()
	if err != nil {
		return 0, err
	}
	b, err := file.Encode()
	if err != nil {
		return 0, err
	}
	var outputs []string
	for _, v := range names.own {
		outputs = append(outputs, v.Name)
	}
	s, r, err := k.session(b, []string{k.net.Input}, outputs, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	own := *k
	own.Prepares = false
	x, err := own.pixels(0, "float")
	if err != nil {
		return 0, err
	}
	fed, err := appended(nil, r, x, append([]int{k.batch}, ownShape(k.net.Spec)...))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, fed[0].Close()) }()
	seconds, err = fastest(func() error { return s.Discard(k.ctx, fed) })
	return seconds / float64(k.batch), err
}

// session loads a model onto the threads of the slot, with the library's usual optimisations, or those of
// programs.
func (k *checking) session(model []byte, inputs, outputs []string, usual bool) (*ort.Session, *ort.Runtime,
	error) {
	r, err := ort.Default()
	if err != nil {
		return nil, nil, err
	}
	load := r.NewCanonicalSession
	if usual {
		load = r.NewSession
	}
	s, err := load(model, inputs, outputs, stages.Device{Class: "cpu", Threads: k.Slot.Device().Threads})
	return s, r, err
}

// ownShape returns the shape of an image in the model's own input.
func ownShape(s modelfile.Spec) []int {
	if s.Layout == modelfile.NHWC {
		return []int{s.Height, s.Width, s.Channels}
	}
	return []int{s.Channels, s.Height, s.Width}
}

// maps returns the maps of the method itself.
func (k *checking) maps() ([][]float32, error) {
	e := k.env
	e.Outputs, e.Calls = nil, nil
	for i, b := range k.images {
		c := stages.Call{Item: stages.Item{ID: fmt.Sprint(i)}}
		for _, port := range k.Stage.Inputs {
			var member []stages.Member
			switch port.Name {
			case "images":
				member = []stages.Member{{Item: c.Item, Data: b}}
			case "targets":
				member = []stages.Member{{Item: c.Item, Data: k.targets[i].Payload()}}
			}
			c.Members = append(c.Members, member)
		}
		e.Calls = append(e.Calls, c)
	}
	if err := k.method(); err != nil {
		return nil, err
	}
	maps := make([][]float32, len(k.images))
	for _, o := range e.Outputs {
		if o.Port != "maps" {
			continue
		}
		t, err := stages.DecodeTensor(o.Data)
		if err != nil {
			return nil, err
		}
		maps[o.Call] = t.Float32s()
	}
	return maps, nil
}

// noiseRunner is a method that adds noise.
type noiseRunner interface {
	copies() Copies
	runNoise(ctx context.Context, e *stages.Env, n *program.Net, noise draw) error
}

// method runs the method, with the noise of the file if it draws some.
func (k *checking) method() error {
	p, ok := k.Params.(noiseRunner)
	if !ok {
		return k.Stage.Run(k.ctx, k.Params, k.env)
	}
	draws, size := standardNormal(k.env, p.copies().Samples*k.net.Size()), k.net.Size()
	return p.runNoise(k.ctx, k.env, k.net, func(_ int, x []float32) func([]float32) {
		deviation, sample := p.copies().deviation(x), 0
		return func(noise []float32) {
			for j := range noise {
				noise[j] = float32(float64(draws[sample*size+j]) * deviation)
			}
			sample++
		}
	})
}

// run runs the file and returns its maps, and the seconds for an image.
func (k *checking) run(usual bool) (maps [][]float32, seconds float64, err error) {
	var inputs []string
	for _, v := range k.file.Inputs {
		inputs = append(inputs, v.Name)
	}
	s, r, err := k.session(k.file.ONNX, inputs, []string{k.file.Map}, usual)
	if err != nil {
		return nil, 0, fmt.Errorf("ONNX Runtime can't load the file: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for from := 0; from < len(k.images); from += k.batch {
		fed, err := k.feed(r, from)
		if err != nil {
			return nil, 0, err
		}
		var result []ort.Result[float32]
		seconds, err = fastest(func() (err error) {
			result, err = ort.Fetch[float32](k.ctx, s, fed)
			return err
		})
		for _, v := range fed {
			err = errors.Join(err, v.Close())
		}
		if err != nil {
			return nil, 0, err
		}
		for m := range slices.Chunk(result[0].Data, len(result[0].Data)/k.batch) {
			maps = append(maps, slices.Clone(m))
		}
	}
	return maps, seconds / float64(k.batch), nil
}

// feed returns the file's inputs for a batch of images.
func (k *checking) feed(r *ort.Runtime, from int) (fed []ort.Value, err error) {
	for i, v := range k.file.Inputs {
		shape := slices.Clone(v.Shape)
		for a := range shape {
			if shape[a] < 0 {
				shape[a] = k.batch
			}
		}
		switch {
		case i == 0:
			x, err := k.pixels(from, v.Type)
			if err != nil {
				return nil, err
			}
			fed, err = appended(fed, r, x, shape)
			if err != nil {
				return nil, err
			}
		case v.Type == "int64":
			var classes []int64
			for _, t := range k.targets[from : from+k.batch] {
				classes = append(classes, int64(t.Class))
			}
			if fed, err = appended(fed, r, classes, shape); err != nil {
				return nil, err
			}
		default: // noise, the same for each image
			p := k.Params.(noiseRunner).copies()
			size := k.net.Size()
			var noise []float32
			for sample := range slices.Chunk(standardNormal(k.env, p.Samples*size), size) {
				noise = append(noise, slices.Repeat(sample, k.batch)...)
			}
			if fed, err = appended(fed, r, noise, shape); err != nil {
				return nil, err
			}
		}
	}
	return fed, nil
}

func appended[T ort.Element](fed []ort.Value, r *ort.Runtime, v []T, shape []int) ([]ort.Value, error) {
	t, err := ort.NewTensor[T](r, shape...)
	if err != nil {
		return fed, err
	}
	t.Set(v)
	return append(fed, t), nil
}

// pixels returns the file's input of images for a batch.
func (k *checking) pixels(from int, elem string) (out []float32, err error) {
	if elem != "float" {
		return nil, fmt.Errorf("the file takes images of type %s: a check feeds float", elem)
	}
	n := k.net
	one := make([]float32, n.Size())
	for _, b := range k.images[from : from+k.batch] {
		t, err := stages.DecodeTensor(b)
		if err != nil {
			return nil, err
		}
		if k.Prepares {
			for _, v := range t.Float32s() {
				out = append(out, v/255)
			}
			continue
		}
		if err := n.Normalise(t, one); err != nil {
			return nil, err
		}
		out = append(out, ownForm(n.Spec, one)...)
	}
	return out, nil
}

// ownForm returns a normalised image in the order and layout of the model's own input.
func ownForm(s modelfile.Spec, x []float32) []float32 {
	places := s.Height * s.Width
	out := make([]float32, 0, len(x))
	channel := func(c int) int {
		if s.Order == modelfile.BGR {
			return s.Channels - 1 - c
		}
		return c
	}
	if s.Layout != modelfile.NHWC {
		for c := range s.Channels {
			out = append(out, x[channel(c)*places:][:places]...)
		}
		return out
	}
	for i := range places {
		for c := range s.Channels {
			out = append(out, x[channel(c)*places+i])
		}
	}
	return out
}

// Summary says what an input or output is.
func (v CompiledValue) Summary() string {
	var dims []string
	for _, d := range v.Shape {
		if d < 0 {
			dims = append(dims, "batch")
		} else {
			dims = append(dims, fmt.Sprint(d))
		}
	}
	return fmt.Sprintf("%s %s[%s]", v.Name, v.Type, strings.Join(dims, ", "))
}

package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
)

// A view is a value of a model for several images.
type view struct {
	shape []int       // for one batch
	rows  [][]float32 // by image; of a large value only a part
}

// leastLooked is the least number of images by which a model's answers are judged.
const leastLooked = 6

// looked returns the images by which a model is judged: a multiple of its batch. The first two are waves of
// normalised values around 0, the others look like pictures.
func looked(s modelfile.Spec) []float32 {
	rows := max(1, s.Batch)
	count := (leastLooked + rows - 1) / rows * rows
	if s.Text != nil {
		return sampleTexts(s, count, 0)
	}
	size := s.Size()
	images := make([]float32, size*count)
	copy(images, waves(min(2*size, len(images))))
	for k := 2; k < count; k++ {
		scene(images[k*size:][:size], s, k)
	}
	return images
}

// scene fills a normalised image: a ramp, patches, speckles or a figure on a ground, in colours that k
// chooses.
func scene(image []float32, s modelfile.Spec, k int) {
	pixels := s.Height * s.Width
	mixed := func(i int) float64 { // evenly in [0,1)
		v := uint64(i)*0x9E3779B97F4A7C15 + uint64(k)*0xD1B54A32D192ED03
		v ^= v >> 31
		v *= 0xBF58476D1CE4E5B9
		return float64((v^v>>29)>>11) / (1 << 53)
	}
	for c := range s.Channels {
		from, to := mixed(2*c), mixed(2*c+1)
		for at := range pixels {
			y, x := float64(at/s.Width)/float64(s.Height), float64(at%s.Width)/float64(s.Width)
			v := 0.0
			switch k % 4 {
			case 0:
				v = from + (to-from)*(x+y)/2
			case 1:
				v = mixed(16 + 3*(int(y*6)*6+int(x*6)) + c)
			case 2:
				v = (from + mixed(16+c*pixels+at)) / 2
			case 3:
				if v = from; math.Hypot(x-0.5, y-0.4) < 0.3 {
					v = to
				}
			}
			image[c*pixels+at] = s.Value(float32(v), c)
		}
	}
}

// look runs a model on several images and returns some of its values. It is an error if the model answers
// with NaN, or differently at a second call or in a batch of other images. The values are those named first
// and others; the first is the answer. Others that have more numbers for one image than for another are
// left out.
func look(ctx context.Context, m modelfile.Model, first string, others ...string) (map[string]view, error) {
	m.Spec.Output = first
	names := append([]string{first}, others...)
	batch := max(1, m.Spec.Batch)
	p, err := program.NewProbe(m, batch, names...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out, uneven := map[string]view{}, map[string]bool{}
	images := looked(m.Spec)
	size := m.Spec.Size()
	for some := range slices.Chunk(images, size*batch) {
		all, err := p.Look(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, r := range all {
			v := out[names[i]]
			switch {
			case uneven[names[i]]:
				continue
			case v.rows == nil || slices.Equal(v.shape, r.Shape):
			case i == 0:
				return nil, &unevenError{v.shape, r.Shape}
			default: // a list of objects in the image
				uneven[names[i]] = true
				delete(out, names[i])
				continue
			}
			if v.shape = r.Shape; len(r.Data)%batch == 0 && onnx.Size(r.Shape) == len(r.Data) {
				for row := range slices.Chunk(r.Data, max(1, len(r.Data)/batch)) {
					v.rows = append(v.rows, row)
				}
			}
			out[names[i]] = v
		}
	}
	again := slices.Clone(images[:size*batch])
	if batch > 1 && len(images) > len(again) {
		copy(again[size:], images[len(images)-size*(batch-1):])
	} else if batch > 1 {
		for k := 1; k < batch; k++ {
			if m.Spec.Text != nil {
				copy(again[k*size:], sampleTexts(m.Spec, 1, k+2))
				continue
			}
			scene(again[k*size:][:size], m.Spec, k+2)
		}
	}
	if err := same(ctx, p, images[:size*batch], again, batch); err != nil {
		return nil, err
	}
	return out, nil
}

// same returns an error if a model answers differently to the first image of two batches that both begin
// with it.
func same(ctx context.Context, p *program.Probe, batch, again []float32, rows int) error {
	var answers [3][]float32
	for i, images := range [][]float32{batch, again, batch} {
		all, err := p.Look(ctx, images)
		if err != nil {
			return err
		}
		answers[i] = all[0].Data
		if len(answers[i])%rows == 0 {
			answers[i] = answers[i][:len(answers[i])/rows]
		}
		if i == 1 && rows == 1 {
			break
		}
	}
	switch {
	case len(answers[0]) != len(answers[1]):
		return judged("the model returns more numbers at a second call with the same image")
	case near(answers[0], answers[1]) || slices.ContainsFunc(answers[0], nan):
		return nil
	case rows > 1 && near(answers[0], answers[2]):
		return judged("an image's answer depends on the other images of its batch of %d: what the model "+
			"normalises over the batch has to be left out when it is exported", rows)
	}
	return judged("the model answers otherwise at a second call with the same image: a node draws " +
		"random numbers; export the model in evaluation mode")
}

// An answerError is an error about the answers of a model that runs.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

// An unevenError is the error about an output whose shape depends on the image.
type unevenError struct{ one, another []int }

func (e *unevenError) Error() string {
	return fmt.Sprintf("the output has shape %v for one image and %v for another", e.one, e.another)
}

func judged(format string, args ...any) error { return &answerError{fmt.Sprintf(format, args...)} }

func nan(v float32) bool { return math.IsNaN(float64(v)) }

// unsound returns the error in a model's answers to several images, whatever their meaning is.
func unsound(rows [][]float32) error {
	for _, row := range rows {
		if n := count32(row, nan); n > 0 {
			return judged("%d of the %d numbers that the model returns for an image are NaN: its weights "+
				"may be those of a training that diverged", n, len(row))
		}
		if n := count32(row, func(v float32) bool { return math.IsInf(float64(v), 1) }); n > 0 {
			return judged("%d of the %d numbers that the model returns for an image are infinite: its "+
				"weights may be those of a training that diverged, or the numbers too large for their type",
				n, len(row))
		}
	}
	return nil
}

func count32(row []float32, is func(float32) bool) (n int) {
	for _, v := range row {
		if is(v) {
			n++
		}
	}
	return n
}

// errIgnored is the error of a model whose answer is the same for every image.
var errIgnored = judged("the model's answer is the same for images that differ: it ignores its image " +
	"(output_kind has it read all the same)")

// constantRows reports whether all images have the same answer.
func constantRows(rows [][]float32) bool {
	for _, row := range rows {
		if !slices.Equal(row, rows[0]) {
			return false
		}
	}
	return len(rows) > 1
}

// rowSum returns the sum of the numbers of every row, false if the sums differ, or a number is negative.
func rowSum(rows [][]float32) (float64, bool) {
	all := 0.0
	for i, row := range rows {
		sum := 0.0
		for _, v := range row {
			if !(v >= 0) {
				return 0, false
			}
			sum += float64(v)
		}
		if i == 0 {
			all = sum
		}
		if !(math.Abs(sum-all) <= 1e-4*all) {
			return 0, false
		}
	}
	return all, all > 0 && len(rows) > 0 && len(rows[0]) > 1
}

// outOfMemory reports whether an error is the machine's, not the model's.
func outOfMemory(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory)
}

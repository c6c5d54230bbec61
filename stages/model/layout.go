package model

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A way is an interpretation of an input's axes.
type way struct {
	layout   string
	channels int
	text     *modelfile.Text // of a model that takes texts
}

// waysOf returns the interpretations of an input's axes, the likeliest first: in the layout that the
// parameters state, or where a dimension is a number of channels, then where one is open; with three
// channels, then with one.
func waysOf(in onnx.Value, p ONNXParams) (out []way) {
	layouts := []string{modelfile.NCHW, modelfile.NHWC}
	if p.Layout != "auto" {
		layouts = []string{p.Layout}
	}
	var open []way
	for _, layout := range layouts {
		switch c := channelsOf(in, layout); c {
		case 1, 3:
			out = append(out, way{layout: layout, channels: c})
		case onnx.Free:
			open = append(open, way{layout: layout, channels: 3})
		}
	}
	out = append(out, open...)
	for _, r := range open {
		out = append(out, way{layout: r.layout, channels: 1})
	}
	return out
}

// channelsOf returns the dimension that has an input's channels in a layout.
func channelsOf(in onnx.Value, layout string) int {
	ch, _, _ := axes(layout)
	return in.Shape[ch]
}

// ambiguous reports whether the shape of an input fits both layouts equally well.
func ambiguous(in onnx.Value, p ONNXParams) bool {
	first, last := channelsOf(in, modelfile.NCHW), channelsOf(in, modelfile.NHWC)
	count := func(d int) bool { return d == 1 || d == 3 }
	return p.Layout == "auto" && (first == onnx.Free && last == onnx.Free || count(first) && count(last))
}

// read reads a model and returns its interpretation. It runs the model for each interpretation of the axes
// of its input until one succeeds.
func read(ctx context.Context, m *onnx.Model, p ONNXParams) (out reading, err error) {
	if texts, err := textInputs(m, p); err != nil || texts != nil {
		if err != nil {
			return out, err
		}
		return readText(ctx, m, p, texts)
	}
	in, err := imageInput(m, p)
	if err != nil {
		return out, err
	}
	ways := waysOf(in, p)
	if len(ways) == 0 {
		return out, stages.BadField("layout",
			"input %q of shape %v has no dimension of 1 or 3 channels where the layout expects it", in.Name,
			in.Shape)
	}
	var failed error
	for i, w := range ways {
		out, err = readAs(ctx, m, p, w)
		if err == nil {
			if i == 0 && ambiguous(in, p) {
				out.notes = alternative(ctx, m, p, w, ways)
			}
			return out, nil
		}
		if failed == nil {
			failed = inOurWords(err, w)
		}
		var field *stages.FieldError
		if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) ||
			errors.As(err, &field) && (field.Field != "size" || p.Size.IsZero()) {
			break // another way doesn't help
		}
	}
	if ambiguous(in, p) && !errors.As(failed, new(*stages.FieldError)) && ctx.Err() == nil &&
		!errors.Is(failed, stages.ErrOutOfMemory) {
		failed = fmt.Errorf("%w; its input leaves open which axis is which, and neither layout works: set "+
			"the parameters size and layout", failed)
	}
	return out, failed
}

// alternative returns a note if a model that was read one way can also be read in the other layout.
func alternative(ctx context.Context, m *onnx.Model, p ONNXParams, taken way, ways []way) []string {
	for _, other := range ways {
		if other.layout == taken.layout || other.channels != taken.channels {
			continue
		}
		if _, err := readAs(ctx, m, p, other); err == nil {
			return []string{fmt.Sprintf("the file doesn't tell the layout: the model takes images as %s "+
				"and as %s, and %s is taken: set the parameter "+
				"layout", taken.layout, other.layout, taken.layout)}
		}
	}
	return nil
}

// ortChannels matches ONNX Runtime's error for an image whose number of channels isn't a Conv's.
var ortChannels = regexp.MustCompile(
	`Input channels C is not equal to kernel channels \* group\. C: (\d+) kernel channels: (\d+)`)

// inOurWords explains the error of a Conv with a wrong number of channels: another axis is taken for the
// channels.
func inOurWords(err error, w way) error {
	found := ortChannels.FindStringSubmatch(err.Error())
	if found == nil || errors.Is(err, stages.ErrOutOfMemory) {
		return err
	}
	other := modelfile.NCHW
	if w.layout == other {
		other = modelfile.NHWC
	}
	return fmt.Errorf("the model fails on images as %s with %d channels: a Conv gets %s channels and takes "+
		"%s; the layout may be %s", w.layout, w.channels, found[1], found[2], other)
}

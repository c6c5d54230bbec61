package model

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
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
	layouts := layoutsOf(in)
	if p.Layout != "auto" && p.Layout != "" {
		layouts = slices.DeleteFunc(slices.Clone(layouts), func(l string) bool { return l != p.Layout })
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

// layoutsOf returns the layouts of an input of as many axes.
func layoutsOf(in onnx.Value) []string {
	switch len(in.Shape) {
	case 2:
		return []string{modelfile.NT}
	case 3:
		return []string{modelfile.NCT, modelfile.NTC}
	}
	return []string{modelfile.NCHW, modelfile.NHWC}
}

// channelsOf returns the dimension that has an input's channels in a layout.
func channelsOf(in onnx.Value, layout string) int {
	ch, _, _ := axes(layout)
	return along(in, ch)
}

// along returns a dimension of an input, 1 for an axis that it lacks.
func along(in onnx.Value, axis int) int {
	if axis < 0 {
		return 1
	}
	return in.Shape[axis]
}

// ambiguous reports whether the shape of an input fits both layouts equally well.
func ambiguous(in onnx.Value, p ONNXParams) bool {
	layouts := layoutsOf(in)
	if len(layouts) < 2 {
		return false
	}
	first, last := channelsOf(in, layouts[0]), channelsOf(in, layouts[1])
	count := func(d int) bool { return d == 1 || d == 3 }
	return p.Layout == "auto" && (first == onnx.Free && last == onnx.Free || count(first) && count(last))
}

// read reads a model and returns its interpretation.
func read(ctx context.Context, m *onnx.Model, p ONNXParams) (out reading, err error) {
	texts, err := textInputs(m, p)
	switch {
	case err != nil:
		return out, err
	case texts != nil:
		return readText(ctx, m, p, texts)
	}
	return readImages(ctx, m, p)
}

// readImages reads a model that takes images, one without classes as such if no interpretation of its input's
// axes gives it classes.
func readImages(ctx context.Context, m *onnx.Model, p ONNXParams) (out reading, err error) {
	out, err = readOneWay(ctx, m, p)
	if p.Kind != "auto" || !errors.Is(err, errNoClasses) && !errors.As(err, new(*unevenError)) {
		return out, err
	}
	p.Kind = kindNone
	return readOneWay(ctx, m, p)
}

// readOneWay runs a model for each interpretation of the axes of its input until one succeeds.
func readOneWay(ctx context.Context, m *onnx.Model, p ONNXParams) (out reading, err error) {
	in, err := imageInput(m, p)
	if err == nil && p.Length != 0 {
		err = stages.BadField("length", "length is for models of texts, and this one takes images: size "+
			"sets theirs")
	}
	if err != nil {
		return out, err
	}
	ways := waysOf(in, p)
	if len(ways) == 0 {
		return out, p.noWay(in)
	}
	var failed error
	for i, w := range ways {
		out, err = readAs(ctx, m, p, w)
		if err == nil {
			if i == 0 && ambiguous(in, p) {
				out.notes = append(out.notes, alternative(ctx, m, p, w, ways)...)
			}
			return out, nil
		}
		if failed == nil || errors.Is(err, errNoClasses) && !errors.Is(failed, errNoClasses) {
			failed = inOurWords(err, w)
		}
		if p.hopeless(ctx, err) {
			break
		}
	}
	if ambiguous(in, p) && !errors.As(failed, new(*stages.FieldError)) && ctx.Err() == nil &&
		!errors.Is(failed, stages.ErrOutOfMemory) {
		failed = fmt.Errorf("%w; its input leaves open which axis is which, and neither layout works: set "+
			"the parameters size and layout", failed)
	}
	return out, failed
}

// hopeless reports whether after an error no other interpretation of the input's axes helps.
func (p ONNXParams) hopeless(ctx context.Context, err error) bool {
	var field *stages.FieldError
	return ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) ||
		errors.As(err, &field) && (field.Field != "size" || p.Size.IsZero())
}

// noWay returns the error of an input that has no channels as the parameters state them.
func (p ONNXParams) noWay(in onnx.Value) error {
	layouts := layoutsOf(in)
	switch {
	case p.Layout != "auto" && !slices.Contains(layouts, p.Layout):
		return stages.BadField("layout", "layout is %s, and input %q of shape %v has another: %s", p.Layout,
			in.Name, in.Shape, strings.Join(layouts, " or "))
	case len(in.Shape) == 3:
		return stages.BadField("layout", "input %q of shape %v takes signals with neither 1 nor 3 channels: "+
			"wrap the model so that it takes images [N, 1, channels, time], a row for each channel", in.Name,
			in.Shape)
	}
	return stages.BadField("layout", "input %q of shape %v has no dimension of 1 or 3 channels where the "+
		"layout expects it", in.Name, in.Shape)
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
	other := map[string]string{modelfile.NCHW: modelfile.NHWC, modelfile.NHWC: modelfile.NCHW,
		modelfile.NCT: modelfile.NTC, modelfile.NTC: modelfile.NCT}[w.layout]
	return fmt.Errorf("the model fails on images as %s with %d channels: a Conv gets %s channels and takes "+
		"%s; the layout may be %s", w.layout, w.channels, found[1], found[2], other)
}

// inputSize returns the height and width of a model's images, given those in its file and the requested size.
// One number for both sets whichever is open; if the file fixes both, the requested size replaces them, see
// [checkResizable].
func inputSize(height, width int, requested picture.Size) (int, int, error) {
	open := func(d int) bool { return d == onnx.Free }
	switch {
	case requested.IsZero() && open(height) && open(width):
		return 0, 0, stages.BadField("size",
			"the model's input has an open height and width: set the parameter size")
	case requested.IsZero() && open(height):
		return 0, 0, stages.BadField("size",
			"the model's input has an open height and width %d: set the parameter size", width)
	case requested.IsZero() && open(width):
		return 0, 0, stages.BadField("size",
			"the model's input has height %d and an open width: set the parameter size", height)
	case requested.IsZero():
		return height, width, nil
	case open(height) == open(width):
		return requested.H, requested.W, nil
	case open(height) && requested.H != requested.W && requested.W != width:
		return 0, 0, stages.BadField("size", "size is %v, but the model's input has width %d", requested,
			width)
	case open(width) && requested.H != requested.W && requested.H != height:
		return 0, 0, stages.BadField("size", "size is %v, but the model's input has height %d", requested,
			height)
	case open(height):
		return requested.H, width, nil
	}
	return height, requested.W, nil
}

// openSize reports whether a model leaves the height or the width of its images open.
func openSize(in onnx.Value, p ONNXParams) (height, width bool) {
	if takesImages(in) != nil {
		return false, false
	}
	ways := waysOf(in, p)
	if len(ways) == 0 {
		return false, false
	}
	_, h, w := axes(ways[0].layout)
	return along(in, h) == onnx.Free, along(in, w) == onnx.Free
}

// axes returns the axes of an input that are its channels, height and width, −1 for one that it lacks.
func axes(layout string) (channels, height, width int) {
	switch layout {
	case modelfile.NHWC:
		return 3, 1, 2
	case modelfile.NCT:
		return 1, -1, 2
	case modelfile.NTC:
		return 2, -1, 1
	case modelfile.NT:
		return -1, -1, 1
	}
	return 1, 2, 3
}

// checkResizable rejects a size other than the file's for a model that reads positions as a sequence: the
// weights of a recurrent layer fix the length of its vectors, and ONNX Runtime doesn't check it.
func checkResizable(m *onnx.Model, s modelfile.Spec, in onnx.Value) error {
	_, h, w := axes(s.Layout)
	fixed := picture.Size{H: along(in, h), W: along(in, w)}
	requested := picture.Size{H: s.Height, W: s.Width}
	if fixed.H == onnx.Free || fixed.W == onnx.Free || fixed == requested {
		return nil
	}
	if n := recurrentNode(m); n != nil {
		return stages.BadField("size",
			"size is %v, but the model only takes images of %v: its %s reads places as a sequence", requested,
			fixed, n.Label())
	}
	return nil
}

// recurrentNode returns a recurrent node of a model, or nil.
func recurrentNode(m *onnx.Model) *onnx.Node {
	for _, n := range m.Proto.Graph.Node {
		if slices.Contains([]string{"GRU", "LSTM", "Loop", "RNN", "Scan"}, n.OpType) {
			return &onnx.Node{NodeProto: n}
		}
	}
	return nil
}

// takesImages returns an error if no parameters can make an input take images.
func takesImages(in onnx.Value) error {
	switch in.Elem {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_DOUBLE:
	default:
		if !integers(in.Elem) {
			return fmt.Errorf("input %q takes %s: floating-point and integer inputs are supported",
				in.Name, in.Elem)
		}
	}
	if signal := len(in.Shape) == 2 || len(in.Shape) == 3; !in.Known || len(in.Shape) != 4 && !signal ||
		signal && !floating(in.Elem) {
		return fmt.Errorf("input %q takes %s of shape %v: images have 4 dimensions, and signals 3 or 2, of "+
			"floating point%s", in.Name, in.Elem, in.Shape, oneFrame(in))
	}
	return nil
}

// oneFrame returns how a model of videos or volumes can be explained, "" for another input.
func oneFrame(in onnx.Value) string {
	if !in.Known || len(in.Shape) != 5 {
		return ""
	}
	return "; a model of videos or volumes can be wrapped so that it takes one image, with its other " +
		"frames or slices as constants"
}

// setInputShape derives batch, layout and size from the shape of an image input, read in one way.
func setInputShape(s *modelfile.Spec, in onnx.Value, size picture.Size, read way) error {
	s.Batch, s.Layout, s.Channels = max(0, in.Shape[0]), read.layout, read.channels
	s.Text = read.text
	_, y, x := axes(s.Layout)
	if s.Signal() {
		if !size.IsZero() && size.H != 1 && size.H != size.W {
			return stages.BadField("size", "size is %v, and the model takes signals, which have one row",
				size)
		}
		size.H = min(1, size.H)
	}
	h, w, err := inputSize(along(in, y), along(in, x), size)
	if err != nil {
		return err
	}
	if rows := max(1, s.Batch); w > picture.MaxPixels/h/rows {
		return fmt.Errorf("input %q takes %d images of %d×%d pixels at once: the maximum is %d pixels",
			in.Name, rows, h, w, picture.MaxPixels)
	}
	s.Height, s.Width = h, w
	return nil
}

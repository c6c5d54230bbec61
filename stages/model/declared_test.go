package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// describedModel returns a model with an input of that shape and these keys and values of metadata.
func describedModel(shape []int, notes ...string) *onnx.Model {
	m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{}}}
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: shape, Known: true})
	for i := 0; i < len(notes); i += 2 {
		m.Proto.MetadataProps = append(m.Proto.MetadataProps,
			&onnxpb.StringStringEntryProto{Key: notes[i], Value: notes[i+1]})
	}
	return m
}

// unread appends a field that onnx.proto leaves out to a message.
func unread(m proto.Message, field protowire.Number, text string) {
	u := m.ProtoReflect().GetUnknown()
	m.ProtoReflect().SetUnknown(protowire.AppendString(
		protowire.AppendTag(slices.Clone(u), field, protowire.BytesType), text))
}

// TestDeclared reads what exporters and trainers write, each entry as its program does.
func TestDeclared(t *testing.T) {
	three := func(v ...float64) []float64 { return v }
	for _, tt := range []struct {
		name  string
		notes []string
		want  Declared
	}{
		{"Ultralytics", []string{"description", "Ultralytics YOLOv8n-cls model", "stride", "1", "task",
			"classify", "batch", "1", "imgsz", "[224, 224]", "names",
			`{0: 'tench', 1: "cock's comb", 2: 'kite'}`, "args", "{'batch': 1, 'half': False, 'nms': False}"},
			Declared{Names: []string{"tench", "cock's comb", "kite"}, Height: 224, Width: 224}},
		{"WinML", []string{"Image.BitmapPixelFormat", "Bgr8", "Image.ColorSpaceGamma", "SRGB",
			"Image.NominalPixelRange", "NominalRange_0_255"}, Declared{Order: "bgr", Channels: 3, Scale: 255,
			Mean: three(0), Std: three(1)}},
		{"WinML, studio range", []string{"Image.BitmapPixelFormat", "Rgba8", "Image.NominalPixelRange",
			"NominalRange_16_235"}, Declared{Order: "rgb", Channels: 3, Scale: 219, Mean: three(-16),
			Std: three(1)}},
		{"WinML, around 0", []string{"Image.BitmapPixelFormat", "Gray8", "Image.NominalPixelRange",
			"Normalized_1_1"}, Declared{Channels: 1, Scale: 1, Mean: three(0.5), Std: three(0.5)}},
		{"timm", []string{"pretrained_cfg", `{"url": "", "num_classes": 1000, "input_size": [3, 288, 256],
			"interpolation": "bicubic", "crop_pct": 0.95, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.1]}`},
			Declared{Scale: 1, Mean: three(0.5, 0.4, 0.3), Std: three(0.2, 0.2, 0.1), Height: 288,
				Width: 256}},
		{"timm, as Python writes it", []string{"data_config", "{'input_size': (3, 224, 224), " +
			"'interpolation': 'bicubic', 'mean': (0.5, 0.5, 0.5), 'std': (0.5, 0.5, 0.5), 'crop_pct': None}"},
			Declared{Scale: 1, Mean: three(0.5, 0.5, 0.5), Std: three(0.5, 0.5, 0.5), Height: 224,
				Width: 224}},
		{"Transformers", []string{"preprocessor_config", `{"do_normalize": true, "do_rescale": true,
			"rescale_factor": 0.00392156862745098, "image_mean": [0.5, 0.5, 0.5],
			"image_std": [0.5, 0.5, 0.5], "size": {"height": 384, "width": 320}}`, "id2label",
			`{"0": "cat", "1": "dog"}`, "label2id", `{"cat": 0, "dog": 1}`},
			Declared{Names: []string{"cat", "dog"}, Scale: 1, Mean: three(0.5, 0.5, 0.5),
				Std: three(0.5, 0.5, 0.5)}},
		{"Transformers, only rescaled", []string{"preprocessor_config", `{"do_normalize": false,
			"rescale_factor": 0.00392156862745098, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}`},
			Declared{Scale: 1, Mean: three(0), Std: three(1)}},
		{"bytes' statistics", []string{"mean", "123.675, 116.28, 103.53", "std", "58.395 57.12 57.375"},
			Declared{Scale: 255, Mean: three(123.675, 116.28, 103.53), Std: three(58.395, 57.12, 57.375)}},
		{"Caffe's, in the net's order", []string{"color_order", "BGR", "mean", "[103.94, 116.78, 123.68]",
			"scale", "0.017"}, Declared{Order: "bgr", Channels: 3, Scale: 255,
			Mean: three(123.68, 116.78, 103.94), Std: three(1 / 0.017)}},
		{"OpenVINO", []string{"reverse_input_channels", "true", "mean_values", "[127.5]", "scale_values",
			"[127.5]", "layout", "NHWC"}, Declared{Order: "bgr", Channels: 3, Layout: "nhwc", Scale: 255,
			Mean: three(127.5), Std: three(127.5)}},
		{"Keras", []string{"data_format", "channels_last", "color_mode", "grayscale"},
			Declared{Channels: 1, Layout: "nhwc"}},
		{"a list of lines", []string{"labels", "cat\ndog\nfish\n"},
			Declared{Names: []string{"cat", "dog", "fish"}}},
		{"PaddleOCR", []string{"character", "0\n1\n2\n一"}, Declared{Names: []string{"0", "1", "2", "一"}}},
		{"JSON in JSON", []string{"config", `{"model": "{\"class_to_idx\": {\"b\": 1, \"a\": 0}}"}`},
			Declared{Names: []string{"a", "b"}}},
		{"escapes", []string{"names", `{0: 'a\'b', 1: "\u00e4", 2: '\xe4\n', 3: "\ud83d\ude00"}`},
			Declared{Names: []string{"a'b", "ä", "ä", "😀"}}},
		{"a count of classes", []string{"classes", "10"}, Declared{}},
		{"a size of no image", []string{"imgsz", "0", "input_size", "[7]x"}, Declared{}},
		{"numbers that leave a dictionary open", []string{"names", "{0: 'a', 2: 'c'}"}, Declared{}},
		{"cut off", []string{"names", "{0: 'a', 1: 'b"}, Declared{}},
		{"mean 0 and deviation 1 of anything", []string{"mean", "[0, 0, 0]", "std", "[1, 1, 1]"}, Declared{}},
		{"a deviation of 0", []string{"mean", "[0.5]", "std", "[0]"}, Declared{}},
		{"prose", []string{"description", "trained on RGB images", "comment", "mean"}, Declared{}},
		{"a conversion, not an order", []string{"color_format", "RGB to BGR"}, Declared{}},
	} {
		got := declaredOf(describedModel([]int{1, 3, 8, 8}, tt.notes...), "")
		said, conflicts := got.Said, got.Conflicts
		got.Said, got.Conflicts = nil, nil
		if a, b := asJSON(t, got), asJSON(t, tt.want); a != b {
			t.Errorf("%s: %s, want %s", tt.name, a, b)
		}
		if len(conflicts) > 0 || (len(said) == 0) != (asJSON(t, tt.want) == "{}") {
			t.Errorf("%s: said %v, conflicts %q", tt.name, said, conflicts)
		}
	}
}

// asJSON rounds numbers, of which some were multiplied on the way.
func asJSON(t *testing.T, d Declared) string {
	t.Helper()
	for _, list := range [][]float64{d.Mean, d.Std} {
		for i, v := range list {
			list[i] = math.Round(v*1e9) / 1e9
		}
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDeclaredByInput reads descriptions, denotations and names of dimensions.
func TestDeclaredByInput(t *testing.T) {
	dims := func(m *onnx.Model) []*onnxpb.TensorShapeProto_Dimension {
		return m.Proto.Graph.Input[0].Type.GetTensorType().Shape.Dim
	}
	named := func(names ...string) func(*onnx.Model) {
		return func(m *onnx.Model) {
			for i, n := range names {
				dims(m)[i].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: n}
			}
		}
	}
	for _, tt := range []struct {
		name string
		set  func(*onnx.Model)
		want Declared
	}{
		{"a description", func(m *onnx.Model) {
			unread(m.Proto.Graph.Input[0], 3, "an image, BGR, values from 0 to 255")
		}, Declared{Order: "bgr", Channels: 3, Scale: 255, Mean: []float64{0}, Std: []float64{1}}},
		{"a description with brackets", func(m *onnx.Model) {
			unread(m.Proto.Graph.Input[0], 3, "NHWC image (RGB) in [-1, 1]")
		}, Declared{Order: "rgb", Channels: 3, Layout: "nhwc", Scale: 1, Mean: []float64{0.5},
			Std: []float64{0.5}}},
		{"a description of a size", func(m *onnx.Model) {
			unread(m.Proto.Graph.Input[0], 3, "batch of 1 to 8 images, 224-256 pixels, version 1.2-3")
		}, Declared{}},
		{"a denoted channel", func(m *onnx.Model) { unread(dims(m)[3], 3, "DATA_CHANNEL") },
			Declared{Layout: "nhwc"}},
		{"named dimensions", named("batch", "height", "width", "channels"), Declared{Layout: "nhwc"}},
		{"short names", named("N", "C", "H", "W"), Declared{Layout: "nchw"}},
		{"names that say nothing", named("unk__1", "unk__2", "unk__3", "unk__4"), Declared{}},
		{"metadata of the graph", func(m *onnx.Model) {
			b, _ := proto.Marshal(&onnxpb.StringStringEntryProto{Key: "classes", Value: "[a]"})
			unread(m.Proto.Graph, 16, string(b))
			b, _ = proto.Marshal(&onnxpb.StringStringEntryProto{Key: "classes", Value: "['a', 'b']"})
			unread(m.Proto.Graph, 16, string(b))
		}, Declared{Names: []string{"a", "b"}}},
		{"a ZipMap", func(m *onnx.Model) {
			n := onnx.NewNode("zip", "ZipMap", []string{"p"}, []string{"loss"})
			n.Domain = "ai.onnx.ml"
			n.Attribute = []*onnxpb.AttributeProto{{Name: "classlabels_strings",
				Strings: [][]byte{[]byte("cat"), []byte("dog")}}}
			m.Proto.Graph.Node = []*onnxpb.NodeProto{n}
		}, Declared{Names: []string{"cat", "dog"}}},
	} {
		m := describedModel([]int{onnx.Free, onnx.Free, onnx.Free, onnx.Free})
		for _, d := range dims(m) {
			d.Value = nil
		}
		tt.set(m)
		got := declaredOf(m, "")
		got.Said, got.Conflicts = nil, nil
		if a, b := asJSON(t, got), asJSON(t, tt.want); a != b {
			t.Errorf("%s: %s, want %s", tt.name, a, b)
		}
	}
}

// TestConflicts holds that two statements which differ are told, and two that agree aren't.
func TestConflicts(t *testing.T) {
	d := declaredOf(describedModel([]int{1, 3, 8, 8}, "Image.BitmapPixelFormat", "Bgr8", "color_mode", "rgb",
		"imgsz", "32", "input_size", "(3, 32, 32)"), "")
	want := `blue comes first: metadata "Image.BitmapPixelFormat" is "Bgr8", but red comes first: metadata ` +
		`"color_mode" is "rgb"`
	if d.Order != modelfile.BGR || len(d.Conflicts) != 1 || d.Conflicts[0] != want {
		t.Errorf("%s, %q", d.Order, d.Conflicts)
	}
}

// TestSpellings writes names, order, range and size as programs write them, at random, and reads them back.
func TestSpellings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	letters := []rune("abcäßж漢'\"\\/{}[](), :;\t0é😀-")
	for range 400 {
		var want Declared
		for range 2 + r.IntN(5) {
			name := "k"
			for range r.IntN(8) {
				name += string(letters[r.IntN(len(letters))])
			}
			want.Names = append(want.Names, strings.TrimSpace(name))
		}
		quoted := func(s string) string {
			if r.IntN(2) == 0 {
				b, _ := json.Marshal(s)
				return string(b)
			}
			return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\t", `\t`).Replace(s) + "'"
		}
		var entries, list, reversed []string
		for i, n := range want.Names {
			entries = append(entries, fmt.Sprintf(pick(`%d: %s`, `"%d":%s`, `'%d' : %s`), i, quoted(n)))
			list = append(list, quoted(n))
			reversed = append(reversed, fmt.Sprintf("%s: %d", quoted(n), i))
		}
		r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		space := pick("", " ", "\n  ")
		names := pick("{"+strings.Join(entries, ","+space)+"}", "["+space+strings.Join(list,
			", ")+pick("", ",")+"]",
			"("+strings.Join(list, ",")+")")
		key := pick("names", "class_names", "Classes", "labels", "id2label", "CLASS-NAMES")
		if distinct := slices.Compact(slices.Sorted(slices.Values(want.Names))); len(distinct) ==
			len(want.Names) && r.IntN(4) == 0 {
			key, names = pick("label2id", "class_to_idx"), "{"+strings.Join(reversed, ","+space)+"}"
		}
		want.Order, want.Channels = pick("rgb", "bgr"), 3
		order := pick(want.Order, strings.ToUpper(want.Order), strings.ToUpper(want.Order)+"8",
			strings.ToUpper(want.Order)+"A8")
		want.Height, want.Width = 2+r.IntN(600), 2+r.IntN(600)
		size := fmt.Sprintf(pick("[%d, %d]", "(3, %d, %d)", "%dx%d", "%d,%d", "[1, 3, %d, %d]",
			`{"height": %d, "width": %d}`, "(%d, %d, 3)"), want.Height, want.Width)
		ends := [][2]float64{{0, 1}, {0, 255}, {-1, 1}}[r.IntN(3)]
		pixels := fmt.Sprintf(pick("[%v, %v]", "(%v,%v)", "%v-%v", "%v to %v", "%v..%v", "%v, %v"),
			ends[0], ends[1])
		notes := [][2]string{{key, names}, {pick("color_order", "channel_order", "color_mode",
			"Image.BitmapPixelFormat"), order}, {pick("imgsz", "input_size", "image_size"), size},
			{pick("input_range", "pixel_range", "Image.NominalPixelRange"), pixels}}
		r.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
		var flat []string
		for _, n := range notes {
			flat = append(flat, n[0], n[1])
		}
		got := declaredOf(describedModel([]int{1, 3, 8, 8}, flat...), "")
		black, white, ok := got.Range()
		if !slices.Equal(got.Names, want.Names) || got.Order != want.Order || got.Height != want.Height ||
			got.Width != want.Width || !ok || black != ends[0] || white != ends[1] || len(got.Conflicts) > 0 {
			t.Errorf("%q: got %+v, want %+v and %v", flat, got, want, ends)
		}
	}
}

// TestContradictions holds that parameters against the file's own words are told, each with its source, and
// that parameters which agree aren't.
func TestContradictions(t *testing.T) {
	d := declaredOf(describedModel([]int{1, 3, 8, 8}, "Image.BitmapPixelFormat", "Bgr8",
		"Image.NominalPixelRange", "NominalRange_0_255", "names", "['cat', 'dog']", "layout", "nchw"), "")
	spec := func(preset, order string, classes int) (ONNXParams, modelfile.Spec) {
		p := ONNXParams{Preset: preset, Order: order}
		s := modelfile.Spec{Channels: 3, Layout: modelfile.NCHW, Classes: classes}
		if err := setPreprocessing(&s, p); err != nil {
			t.Fatal(err)
		}
		return p, s
	}
	p, s := spec("imagenet", "auto", 3)
	got := strings.Join(d.contradictions(p, s, ""), "\n")
	for _, want := range []string{
		`the file says that blue comes first (metadata "Image.BitmapPixelFormat" is "Bgr8"); with preset ` +
			`imagenet red comes first`,
		`fed as 0 to 255 (metadata "Image.NominalPixelRange" is "NominalRange_0_255");` +
			` with preset imagenet ` +
			`and what overrides it they are fed as -2.118 to 2.64`,
		"2 classes are named cat, dog",
		"the model has 3 classes, so the names aren't used",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
	p, s = spec("raw", "bgr", 2)
	if out := d.contradictions(p, s, "cat\ndog"); len(out) > 0 {
		t.Errorf("agreeing parameters contradict: %q", out)
	}
	if out := d.contradictions(p, s, "dog\ncat"); len(out) != 1 ||
		!strings.Contains(out[0], `class 0 is "cat" there and "dog" in labels`) {
		t.Errorf("exchanged names: %q", out)
	}
}

// TestWith holds that the parameters which are written feed pixels as the file says, for every preset and for
// numbers that are no preset's.
func TestWith(t *testing.T) {
	for _, preset := range modelfile.Presets() {
		d := Declared{Order: preset.Order, Scale: preset.Scale, Mean: preset.Mean, Std: preset.Std}
		if got := d.With("imagenet"); len(got) != 1 || got[0] != "preset: "+preset.Name {
			t.Errorf("%s: %q", preset.Name, got)
		}
	}
	d := Declared{Order: "bgr", Scale: 1, Mean: []float64{0.1, 0.2, 0.3}, Std: []float64{0.5}}
	want := "preset: raw order: bgr scale: 1 mean: [0.1, 0.2, 0.3] std: 0.5"
	if got := strings.Join(d.With("imagenet"), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := strings.Join((Declared{Order: "bgr"}).With("half"), " "); got != "preset: half order: bgr" {
		t.Errorf("only an order: %s", got)
	}
}

// FuzzLiteral holds that no text ends the process, and that JSON is read as it is.
func FuzzLiteral(f *testing.F) {
	for _, s := range []string{`{0: 'a'}`, `["a", (1, 2)]`, `"\ud83d\ude00"`, `[[[[`,
		`{"a": [1e5, null]}`, `'\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, ok := readLiteral(s)
		declaredOf(describedModel([]int{1, 3, 8, 8}, "names", s, "imgsz", s, "config", s, "mean", s), "")
		var list []string
		if json.Unmarshal([]byte(s), &list) == nil && list != nil && !ok {
			t.Errorf("%q is JSON, and isn't read", s)
		}
	})
}

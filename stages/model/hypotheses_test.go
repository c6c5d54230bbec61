package model_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

var (
	strangers     = flag.Int("strangers", 24, "how many random nets and folders TestStrangers draws")
	strangersFrom = flag.Int("strangers-from", 0, "the first one's seed")
)

// A stranger is a net that knows colours and a folder of pictures, with the truth of how the net is fed and
// which class each picture has.
type stranger struct {
	preset, order, layout string
	numbering             string // how folders or labels tell classes
	classes, side         int
	open                  bool    // the net leaves the size of images open
	first                 int     // class of the first folder: 1 behind a background
	sharp, noise          float64 // of the net, of the pictures
	per                   []int   // pictures by class, 0 for a class without any
	colours               [][3]float64
	names                 []string         // of the classes
	truth                 map[string]int64 // class of the model by that of the data set
}

// drawStranger draws a stranger.
func drawStranger(r *rand.Rand) stranger {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	var presets []string
	for _, p := range modelfile.Presets() {
		presets = append(presets, p.Name)
	}
	s := stranger{preset: pick(presets...), order: "auto", layout: pick("nchw", "nchw", "nhwc"),
		numbering: pick("text", "numbers", "trailing", "list", "list-from-1", "label-file", "metadata",
			"background", "unplaced"),
		classes: 2 + r.IntN(14), side: 4 + r.IntN(5),
		sharp: math.Exp2(3 + 4*r.Float64()), noise: 0.02 + 0.15*r.Float64()}
	if r.IntN(4) == 0 {
		p, _ := modelfile.PresetNamed(s.preset)
		s.order = map[string]string{modelfile.RGB: modelfile.BGR, modelfile.BGR: modelfile.RGB}[p.Order]
	}
	if s.numbering == "background" {
		s.first = 1
	}
	absent := 0.0
	if r.IntN(3) == 0 && s.numbering != "text" && s.numbering != "background" {
		absent = 0.4
	}
	for c := range s.classes {
		s.colours = append(s.colours, [3]float64{r.Float64(), r.Float64(), r.Float64()})
		n := 1 + r.IntN(6)
		if c < s.first || c < s.classes-1 && r.Float64() < absent {
			n = 0
		}
		s.per = append(s.per, n)
	}
	s.truth = map[string]int64{}
	s.names = make([]string, s.classes)
	order := r.Perm(1000)
	for c := range s.names {
		switch s.numbering {
		case "numbers":
			s.names[c] = strconv.Itoa(c)
		case "trailing":
			s.names[c] = fmt.Sprintf("class_%d", c)
		case "text", "background":
			s.names[c] = fmt.Sprintf("kind-%03d-%c", c, 'a'+order[c]%26)
		default:
			s.names[c] = fmt.Sprintf("kind-%03d", order[c])
		}
	}
	return s
}

// net writes the net, whose names are random.
func (s stranger) net(t *testing.T, r *rand.Rand) string {
	p, _ := modelfile.PresetNamed(s.preset)
	order := s.order
	if order == "auto" {
		order = p.Order
	}
	// A convolution undoes the preset: colours and their complements in [0,1].
	undo, bias := make([]float32, 18), make([]float32, 6)
	for c := range 3 {
		at := c
		if order == modelfile.BGR {
			at = 2 - c
		}
		undo[c*3+at] = float32(p.Std[c] / p.Scale)
		undo[(c+3)*3+at] = -undo[c*3+at]
		bias[c] = float32(p.Mean[c] / p.Scale)
		bias[c+3] = 1 - bias[c]
	}
	weights, offsets := make([]float32, s.classes*6), make([]float32, s.classes)
	for k, colour := range s.colours {
		for c, v := range colour {
			weights[k*6+c] = float32(s.sharp * v)
			weights[k*6+c+3] = float32(s.sharp * (1 - v))
			offsets[k] -= float32(s.sharp * (v*v + (1-v)*(1-v)) / 2)
		}
	}
	g := graph{&onnxpb.GraphProto{Name: "g"}}
	weight := func(v []float32, shape ...int) string {
		t := onnx.FloatTensor(fmt.Sprintf("w%d", r.IntN(1e9)), v, shape...)
		g.Initializer = append(g.Initializer, t)
		return t.Name
	}
	in := fmt.Sprintf("x%d", r.IntN(1e9))
	side := s.side
	if s.open {
		side = -1
	}
	x, shape := in, []int{-1, 3, side, side}
	if s.layout == modelfile.NHWC {
		shape = []int{-1, side, side, 3}
		x = g.op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	}
	x = g.op("Conv", []string{x, weight(undo, 6, 3, 1, 1), weight(bias, 6)})
	x = g.op("GlobalAveragePool", []string{g.op("Relu", []string{x})})
	x = g.op("Gemm", []string{g.op("Flatten", []string{x}), weight(weights, s.classes, 6),
		weight(offsets, s.classes)}, onnx.Attr{Name: "transB", Value: 1})
	if r.IntN(2) == 0 {
		x = g.op("Softmax", []string{x}, onnx.Attr{Name: "axis", Value: 1})
	}
	g.Input = []*onnxpb.ValueInfoProto{value(in, float, shape...)}
	g.Output = []*onnxpb.ValueInfoProto{value(x, float, -1, s.classes)}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g.GraphProto}}
	if s.numbering == "metadata" {
		var words []string
		for c, n := range s.names {
			words = append(words, fmt.Sprintf("%d: '%s'", c, n))
		}
		text := "{" + strings.Join(words, ", ") + "}"
		m.Proto.MetadataProps = append(m.Proto.MetadataProps,
			&onnxpb.StringStringEntryProto{Key: "names", Value: text})
	}
	return modeltest.File(t, m)
}

// folder writes the pictures, with random names.
func (s stranger) folder(t *testing.T, r *rand.Rand) string {
	dir := t.TempDir()
	photos := filepath.Join(dir, "photos")
	var rows [][]string
	names := slices.Clone(s.names)
	if s.numbering == "unplaced" { // by names that tell nothing
		r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	}
	for c, n := range s.per {
		switch s.numbering {
		case "list":
			s.truth[strconv.Itoa(c)] = int64(c)
		case "list-from-1":
			s.truth[strconv.Itoa(c+1)] = int64(c)
		default:
			s.truth[names[c]] = int64(c)
		}
		for range n {
			m := image.NewNRGBA(image.Rect(0, 0, s.side, s.side))
			var shift [3]float64
			for ch := range shift {
				shift[ch] = s.noise * r.NormFloat64()
			}
			for i := range s.side * s.side {
				var v [3]uint8
				for ch := range v {
					value := s.colours[c][ch] + shift[ch] + 0.05*r.NormFloat64()
					v[ch] = uint8(255 * min(max(value, 0), 1))
				}
				m.Set(i%s.side, i/s.side, color.NRGBA{v[0], v[1], v[2], 255})
			}
			file := fmt.Sprintf("%06d.png", r.IntN(1e6))
			at := filepath.Join(names[c], file)
			switch s.numbering {
			case "list", "list-from-1":
				at = file
				label := c
				if s.numbering == "list-from-1" {
					label++
				}
				rows = append(rows, []string{file, strconv.Itoa(label)})
			}
			writePNG(t, filepath.Join(photos, at), m)
		}
	}
	if rows != nil {
		r.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
		var b bytes.Buffer
		if err := csv.NewWriter(&b).WriteAll(append([][]string{{"file", "label"}}, rows...)); err != nil {
			t.Fatal(err)
		}
		writeInto(t, filepath.Join(photos, "labels.csv"), b.Bytes())
	}
	if s.numbering == "label-file" {
		writeInto(t, filepath.Join(dir, fmt.Sprintf("%d.txt", r.IntN(1000))),
			[]byte(strings.Join(s.names, "\n")+"\n"))
	}
	return photos
}

func writeInto(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func writePNG(t *testing.T, file string, m image.Image) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	writeInto(t, file, b.Bytes())
}

// A judgement is what is answered about a stranger.
type judgement string

const (
	right    judgement = "right"
	asked    judgement = "asked, the truth among the answers"
	named    judgement = "right but for what is named as not told apart"
	declined judgement = "no answer"
	wrong    judgement = "wrong"
)

// judge compares an answer with the truth.
func (s stranger) judge(m *registry.Measured) judgement {
	best, ok := m.Best()
	if !ok {
		return declined
	}
	isTrue := func(h model.Hypothesis) bool {
		f := m.Feeds[h.Feed]
		if order := cmp.Or(f.Order, "auto"); f.Preset != s.preset || order != s.order {
			return false
		}
		for i := range m.Len() {
			if m.Label(i, h.Numbering) != s.truth[m.Classes[m.Group(i)]] {
				return false
			}
		}
		return true
	}
	doubtful, unlikely := m.Rivals()
	switch {
	case isTrue(best) && doubtful == nil:
		return right
	case isTrue(best), slices.ContainsFunc(doubtful, isTrue):
		return asked
	case slices.ContainsFunc(unlikely, isTrue):
		return named
	}
	return wrong
}

// TestStrangers holds that of a random net and folder the answer is the truth, or a question or a remark that
// has the truth in it, or none: never another answer that is told as certain.
func TestStrangers(t *testing.T) {
	modeltest.Runtime(t)
	count := map[judgement]int{}
	kinds := map[string]int{}
	for seed := *strangersFrom; seed < *strangersFrom+*strangers; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 27))
		s := drawStranger(r)
		file, photos := s.net(t, r), s.folder(t, r)
		if seed%4 == 3 && s.names != nil { // pictures that tell nothing come later
			for i, n := range s.names {
				for k := 0; k < 8 && s.per[i] > 0 && !strings.HasPrefix(s.numbering, "list"); k++ {
					writePNG(t, filepath.Join(photos, n, fmt.Sprintf("z%d.png", k)),
						image.NewGray(image.Rect(0, 0, 8, 8)))
				}
			}
		}
		found, err := model.Inspect(t.Context(), model.ONNXParams{Path: file, Preset: "imagenet",
			Layout: "auto", Order: "auto", Kind: "auto"})
		if err != nil || found.Problem != "" {
			t.Fatal(seed, err, found.Problem)
		}
		x := registry.Inspection{Inspection: found}
		folder, err := registry.LookInto(photos)
		if err != nil {
			t.Fatal(seed, err)
		}
		m, err := registry.Measure(t.Context(), file, registry.Look{}, &x, folder, nil)
		if err != nil {
			t.Fatal(seed, err)
		}
		for _, h := range m.Hypotheses {
			if h.Images < m.Images && h.Behind < 12 {
				t.Errorf("seed %d: %v was given up after %d of %d images, and is only %.3g behind", seed,
					m.FeedName(h), h.Images, m.Images, h.Behind)
			}
		}
		if m.Unanswered() != nil {
			count[declined]++
			continue
		}
		o := s.judge(m)
		count[o]++
		kinds[s.numbering+": "+string(o)]++
		if o == wrong {
			best, _ := m.Best()
			t.Errorf("seed %d: %s, order %s, %s by %s, %d classes, %v: the answer is %v, classes %s, %d of "+
				"%d right, posterior %.3g", seed, s.preset, s.order, s.layout, s.numbering, s.classes, s.per,
				m.FeedName(best), m.Numberings[best.Numbering].Text, best.Right, best.Images, best.Posterior)
		}
	}
	t.Logf("%v\n%v", count, kinds)
}

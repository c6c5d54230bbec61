package attribute

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// tasks is the folder of the nets of other tasks.
const tasks = "../../experiments/tasks"

const taskSize = 64

// taskPicture is a striped disc and a checked square on a grey slope, u8 [3,64,64].
func taskPicture() []byte {
	out := make([]byte, 3*taskSize*taskSize)
	colour := func(at int, rgb ...int) {
		for c, v := range rgb {
			out[c*taskSize*taskSize+at] = byte(v)
		}
	}
	for y := range taskSize {
		for x := range taskSize {
			at := y*taskSize + x
			colour(at, 150+y, 170+x/2, 200)
			if math.Hypot(float64(x)-17, float64(y)-45) < 12 {
				colour(at, 230-150*(x/4%2), 60, 40+90*(x/4%2))
			}
			if x >= 37 && x < 58 && y >= 8 && y < 29 {
				colour(at, 30, 60+140*((x/4+y/4)%2), 90)
			}
		}
	}
	return out
}

// A rawNet returns a file's outputs in the order of their names, without the language of targets.
type rawNet struct {
	*program.Net
	probe *program.Probe
	names []string
}

func newRawNet(t *testing.T, file string) (rawNet, stages.Data) {
	t.Helper()
	path := filepath.Join(tasks, file)
	base := modeltest.Model(t, model.ONNXParams{Preset: "half", Kind: "none", Path: path})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rawNet{Net: modeltest.Net(t, base)}
	for _, o := range r.Spec.Outputs {
		r.names = append(r.names, o.Name)
	}
	spec := r.Spec
	spec.Output = r.names[0]
	if r.probe, err = program.NewProbe(modelfile.Model{Spec: spec, ONNX: b}, 1, r.names...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.probe.Close)
	return r, base
}

// at returns the outputs for normalised pixels, by name.
func (r rawNet) at(t *testing.T, pixels []float64) map[string][]float64 {
	t.Helper()
	single := make([]float32, len(pixels))
	for i, v := range pixels {
		single[i] = float32(v)
	}
	all, err := r.probe.Look(t.Context(), single)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for k, name := range r.names {
		for _, v := range all[k].Data {
			out[name] = append(out[name], float64(v))
		}
	}
	return out
}

// normalisedPicture returns the pixels as the nets take them.
func normalisedPicture() []float64 {
	var out []float64
	for _, v := range taskPicture() {
		out = append(out, (float64(v)/255-0.5)/0.5)
	}
	return out
}

// denseSimilarity is equations 2 and 3 of Petsiuk et al., CVPR 2021: the largest product, over the detections
// of a masked image, of the overlap with a detection, the objectness and the cosine of the classes'
// probabilities.
func denseSimilarity(rows, of []float64) float64 {
	best := math.Inf(-1)
	for r := 0; r < len(rows); r += 9 {
		p := rows[r : r+9]
		w := math.Max(0, math.Min(p[2], of[2])-math.Max(p[0], of[0]))
		h := math.Max(0, math.Min(p[3], of[3])-math.Max(p[1], of[1]))
		area := func(b []float64) float64 { return (b[2] - b[0]) * (b[3] - b[1]) }
		iou := w * h / (area(p) + area(of) - w*h)
		best = max(best, iou*p[4]*denseCosine(p[5:], of[5:]))
	}
	return best
}

func denseCosine(a, b []float64) float64 {
	ab, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}

// surest returns the row of the surest disc.
func surest(rows []float64) []float64 {
	best := 0
	for r := 0; r < len(rows); r += 9 {
		if rows[r+4]*rows[r+5] > rows[best+4]*rows[best+5] {
			best = r
		}
	}
	return rows[best : best+9]
}

// Targets of the detector: the similarity to the surest disc, and that row's score of discs.
const (
	detectionTarget = "detection(detections[:, :4], detections[:, 5:], " +
		"frozen(argmax(detections[:, 4] * detections[:, 5])), detections[:, 4])"
	rowTarget = "(detections[:, 4] * detections[:, 5])[frozen(argmax(detections[:, 4] * detections[:, 5]))]"
)

// taskInputs returns the inputs of a stage that explains an expression for the picture.
func taskInputs(t *testing.T, base stages.Data, p model.TargetParams) map[string][]stages.Data {
	t.Helper()
	in := map[string][]stages.Data{"model": {modeltest.Explaining(t, base, p)},
		"images": {stagetest.Items(nil, stages.NewTensor(taskPicture(), 3, taskSize, taskSize).Encode())}}
	r := stagetest.Run(t, model.Predict, nil, in)
	in["targets"] = []stages.Data{stagetest.Items(nil, r.Payloads["targets"][0])}
	return in
}

// TestDRISE holds the map of attribute/rise at the target detection against D-RISE in double precision: the
// sum of masks, each weighted with the similarity of the masked image's detections to the original's.
func TestDRISE(t *testing.T) {
	modeltest.Runtime(t)
	net, base := newRawNet(t, "detector.onnx")
	in := taskInputs(t, base, model.TargetParams{Target: detectionTarget})
	p := RISE.NewParams().(*RISEParams)
	p.Masks, p.Cells, p.Output = 60, 16, "logit"
	got := mapsOf(t, RISE, p, in)[0]

	pixels := normalisedPicture()
	found := surest(net.at(t, pixels)["detections"])
	around := found[0] < 17 && found[2] > 17 && found[1] < 45 && found[3] > 45
	if !(found[4] > 0.5 && found[5] > 0.5 && around) {
		t.Fatalf("the disc isn't detected: %v", found)
	}
	e, err := stagetest.Env(&RISE, in)
	if err != nil {
		t.Fatal(err)
	}
	masks := drawMasks(e.SharedRand("masks"), p.Masks, p.Cells, p.P, taskSize, taskSize)
	want := make([]float64, taskSize*taskSize)
	mask, masked := make([]float32, len(want)), make([]float64, len(pixels))
	least, most := math.Inf(1), math.Inf(-1)
	for k := range p.Masks {
		masks.render(k, mask)
		for i, v := range pixels {
			masked[i] = v * float64(mask[i%len(mask)])
		}
		s := denseSimilarity(net.at(t, masked)["detections"], found)
		least, most = min(least, s), max(most, s)
		for i, m := range mask {
			want[i] += s * float64(m) / (float64(p.Masks) * p.P)
		}
	}
	off, largest := apartBy(got, want)
	if !(off <= 2e-5*largest) {
		t.Errorf("the map is off by %v of %v", off, largest)
	}
	if most-least < 0.1 {
		t.Errorf("the similarities are all from %v to %v", least, most)
	}
	t.Logf("off by %.2g of %.3g, similarities from %.3g to %.3g", off, largest, least, most)
}

// apartBy returns the largest difference, and the largest magnitude of what is wanted.
func apartBy(got, want []float64) (off, largest float64) {
	for i, v := range want {
		off, largest = max(off, math.Abs(got[i]-v)), max(largest, math.Abs(v))
	}
	if len(got) != len(want) {
		off = math.Inf(1)
	}
	return off, largest
}

// deletionOf returns the curve of perturb/deletion of an expression, in an order that depends on no map, and
// the images along it, dense.
func deletionOf(t *testing.T, in map[string][]stages.Data) (curve []float64, images [][]float64) {
	t.Helper()
	const steps = 8
	n := taskSize * taskSize
	ranks := make([]uint32, n)
	for i := range ranks {
		ranks[i] = uint32(i * 1657 % n)
	}
	with := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, stages.NewTensor(ranks, taskSize, taskSize).Encode())}}
	for name, d := range in {
		with[name] = d
	}
	p := perturb.Deletion.NewParams().(*perturb.DeletionParams)
	p.Steps = steps
	r := stagetest.Run(t, perturb.Deletion, p, with)
	c, err := stages.DecodeTensor(r.Payloads["curves"][0])
	if err != nil || !slices.Equal(c.Shape, []int{1, steps + 1}) {
		t.Fatalf("a curve of %v: %v", c.Shape, err)
	}
	for k := range steps + 1 {
		image := normalisedPicture()
		for i := range image {
			if int(ranks[i%n]) < k*n/steps {
				image[i] = 0
			}
		}
		images = append(images, image)
	}
	return c.Float64s(), images
}

// A densePreset is a preset's value, written without the language: of the outputs for an image and for the
// original.
type densePreset struct {
	file, target, vectors string
	value                 func(now, original map[string][]float64) float64
}

func densePresets(texts [][]float64) map[string]densePreset {
	detection := func(now, original map[string][]float64) float64 {
		return denseSimilarity(now["detections"], surest(original["detections"]))
	}
	return map[string]densePreset{
		"regression": {"tagger.onnx", "regression(covered)", "", func(now, _ map[string][]float64) float64 {
			return now["covered"][0]
		}},
		"binary": {"tagger.onnx", "binary(only(disc))", "", func(now, was map[string][]float64) float64 {
			return math.Copysign(1, was["disc"][0]) * now["disc"][0]
		}},
		"multi-label":  {"tagger.onnx", "multi-label(tags)", "", denseTags},
		"segmentation": {"segmenter.onnx", "segmentation(1)", "", denseSegmentation},
		"detection":    {"detector.onnx", detectionTarget, "", detection},
		"row of a detector": {"detector.onnx", rowTarget, "", func(now, was map[string][]float64) float64 {
			all, best := was["detections"], surest(was["detections"])
			for r := 0; ; r += 9 {
				if &all[r] == &best[0] {
					return now["detections"][r+4] * now["detections"][r+5]
				}
			}
		}},
		"similarity": {"embedder.onnx", "similarity(to=vectors[2])", "texts.npy",
			func(now, _ map[string][]float64) float64 { return denseCosine(now["embedding"], texts[2]) }},
		"zero-shot": {"embedder.onnx", "zero-shot(scale=10)", "texts.npy",
			func(now, was map[string][]float64) float64 {
				best, total := 0, 0.0
				for k, v := range texts {
					if denseCosine(was["embedding"], v) > denseCosine(was["embedding"], texts[best]) {
						best = k
					}
					total += math.Exp(10 * denseCosine(now["embedding"], v))
				}
				return math.Exp(10*denseCosine(now["embedding"], texts[best])) / total
			}},
		"contrast": {"tagger.onnx", "contrast(tags, 4)", "", func(now, _ map[string][]float64) float64 {
			v := now["tags"][4]
			for k, z := range now["tags"] {
				if k != 4 {
					v -= z / 11
				}
			}
			return v
		}},
		"log-odds": {"tagger.onnx", "log-odds(tags, 4)", "", func(now, _ map[string][]float64) float64 {
			total := 0.0
			for k, z := range now["tags"] {
				if k != 4 {
					total += math.Exp(z)
				}
			}
			return now["tags"][4] - math.Log(total)
		}},
		"finer": {"tagger.onnx", "finer(tags, 4)", "", func(now, was map[string][]float64) float64 {
			near := []int{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11}
			slices.SortStableFunc(near, func(a, b int) int {
				z := was["tags"]
				return int(math.Copysign(1, math.Abs(z[a]-z[4])-math.Abs(z[b]-z[4])))
			})
			now4 := now["tags"][4]
			return now4 - 0.6*(now["tags"][near[0]]+now["tags"][near[1]]+now["tags"][near[2]])/3
		}},
	}
}

// denseTags is the sum of the logits that were positive.
func denseTags(now, was map[string][]float64) (v float64) {
	for k, z := range was["tags"] {
		if z > 0 {
			v += now["tags"][k]
		}
	}
	return v
}

// denseSegmentation is the sum of class 1's logits over the pixels that were taken for it.
func denseSegmentation(now, was map[string][]float64) (v float64) {
	n := taskSize * taskSize
	for i := range n {
		best := 0
		for k := range 5 {
			if was["logits"][k*n+i] > was["logits"][best*n+i] {
				best = k
			}
		}
		if best == 1 {
			v += now["logits"][n+i]
		}
	}
	return v
}

// TestCurvesOfPresets holds the deletion curve of every preset, on the nets of the tasks, against the preset
// written in Go in double precision, of the raw outputs for the images along the curve. The curve of D-RISE
// differs from that of the row's class.
func TestCurvesOfPresets(t *testing.T) {
	modeltest.Runtime(t)
	b, err := os.ReadFile(filepath.Join(tasks, "texts.npy"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := npy.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	texts := slices.Collect(slices.Chunk(a.Float64s(), 32))
	curves := map[string][]float64{}
	for name, p := range densePresets(texts) {
		net, base := newRawNet(t, p.file)
		with := model.TargetParams{Target: p.target}
		if p.vectors != "" {
			with.Vectors = filepath.Join(tasks, p.vectors)
		}
		got, images := deletionOf(t, taskInputs(t, base, with))
		original := net.at(t, images[0])
		var want []float64
		for _, image := range images {
			want = append(want, p.value(net.at(t, image), original))
		}
		off, largest := apartBy(got, want)
		if !(off <= 2e-5*max(1e-3, largest)) {
			t.Errorf("%s: the curve is off by %v:\n got %v\nwant %v", name, off, got, want)
		}
		if slices.Max(want)-slices.Min(want) < 1e-3*largest {
			t.Errorf("%s: the curve is flat: %v", name, want)
		}
		curves[name] = got
	}
	if off, _ := apartBy(curves["detection"], curves["row of a detector"]); off < 0.05 {
		t.Errorf("the curve of a detection is that of its class: %v", curves["detection"])
	}
}

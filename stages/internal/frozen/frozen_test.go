// Package frozen holds what every stage makes of fixed inputs, so that a change of its numerics isn't stored
// under the keys of the old ones. Programs of models return made-up numbers here: what they compute stands in
// the keys by their digests, and differs from processor to processor.
package frozen

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/report"
	"github.com/runexp/runexp/stages/stagetest"
)

var update = flag.Bool("update", false,
	"write testdata/outputs.csv anew; a stage whose outputs changed needs a higher Version. Where the "+
		"inputs of this test changed, remove the file first")

const file = "testdata/outputs.csv" // stage, version, digest of its outputs

// TestFrozenOutputs fails when the bytes that a stage makes change and its Version doesn't. Stages of models
// are run on a convolutional net and a transformer.
func TestFrozenOutputs(t *testing.T) {
	modeltest.Runtime(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors add and multiply in one step, which rounds otherwise")
	}
	frozen := read(t)
	var rows [][]string
	w := newWorld(t)
	for _, s := range w.stages {
		digest := w.outputs(t, s)
		rows = append(rows, []string{s.Name, strconv.Itoa(s.Version), digest})
		switch was, known := frozen[s.Name]; {
		case !known && !*update:
			t.Errorf("%s isn't in %s: go test ./stages/internal/frozen -update", s.Name, file)
		case known && digest != was.digest && s.Version <= was.version:
			t.Errorf("%s makes other bytes than its version %d made: raise Version, and run go test "+
				"./stages/internal/frozen -update", s.Name, was.version)
			rows[len(rows)-1] = []string{s.Name, strconv.Itoa(was.version), was.digest}
		case known && !*update && s.Version != was.version:
			t.Errorf("%s has version %d, and %s has what version %d made: go test ./stages/internal/frozen "+
				"-update", s.Name, s.Version, file, was.version)
		}
		delete(frozen, s.Name)
	}
	for name := range frozen {
		if !*update {
			t.Errorf("%s is in %s, and there is no such stage", name, file)
		}
	}
	if *update {
		write(t, rows)
	}
}

type made struct {
	version int
	digest  string
}

func read(t *testing.T) map[string]made {
	t.Helper()
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) && *update {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]made{}
	for _, row := range rows {
		version, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		list[row[0]] = made{version, row[2]}
	}
	return list
}

func write(t *testing.T, rows [][]string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
}

// A world is what stages are run on.
type world struct {
	stages []*stages.Stage
	params map[string]map[string]any // by stage: what isn't the default
	given  map[stages.Type]stages.Data
	ports  map[string]stages.Data // by stage and port, where the type alone doesn't do
	models map[string]stages.Data // that stages of models run on
}

const side, count = 64, 8

func newWorld(t *testing.T) *world {
	t.Helper()
	set := registry.Builtin()
	w := &world{given: map[stages.Type]stages.Data{}, ports: map[string]stages.Data{},
		models: map[string]stages.Data{}}
	for _, name := range set.Names() {
		s, _ := set.Lookup(name)
		w.stages = append(w.stages, s)
	}
	photos, external := photographs(t), mapFiles(t)
	net := filepath.Join("..", "..", "..", "experiments", "quickstart", "resnet.onnx")
	w.params = map[string]map[string]any{
		"dataset/folder":           {"path": photos},
		"dataset/shapes":           {"count": count, "size": side},
		"attribute/external":       {"path": external},
		"attribute/partition-shap": {"evaluations": 60},
		"attribute/rise":           {"masks": 20},
		"model/target":             {"target": "output[1]"},
		"model/onnx":               {"path": net, "preset": "half"},
		"fuse/meta-rank":           {"rank": "method"},
		"fuse/rankings":            {"rank": "method"},
		"segments/external":        {"path": labelFiles(t)},
		"stats/agreement":          {"rank": "method"},
		"stats/consistency":        {"rank": "method"},
		"stats/friedman":           {"rank": "method"},
		"stats/icr":                {"rate": "method", "between": "metric"},
		"stats/irr":                {"rate": "method"},
		"stats/mean-curve":         {"response": "probability"},
		"stats/sensitivity":        {"of": "method", "reference": "a", "response": "probability"},
		"stats/wilcoxon":           {"among": "method"},
		"report/leaderboard":       {"rank": "method"},
		"report/table":             {"rows": []string{"method"}},
		"report/curves":            {"line": "method"},
		"report/boxplot":           {"x": "method"},
		"report/heatmap":           {"rows": []string{"method"}},
		"report/intervals":         {"value": "mean rank", "low": "p", "high": "chi2"},
		"report/sheet":             {"items": report.Selection{Count: 2}},
		"perturb/gradient-masking": {"steps": 2},
		"score/completeness":       {"reference": "zero", "output": "logit"},
		"score/external": {"path": filepath.Join("..", "..", "..", "experiments", "metrics", "external.csv"),
			"where": []string{"method=saliency"}, "item": "image", "value": "sic"},
	}
	w.params["dataset/voc"] = map[string]any{"path": vocFolder(t)}
	texts := textFiles(t)
	w.params["dataset/text"] = map[string]any{"path": filepath.Join(texts, "texts.csv"), "length": 12}
	w.params["dataset/tokens"] = map[string]any{"path": filepath.Join(texts, "tokens.jsonl")}
	for _, name := range []string{"resnet", "vit"} {
		w.params["model/onnx"]["path"] = filepath.Join(filepath.Dir(net), name+".onnx")
		w.models[name] = w.value(t, "model/onnx")
	}
	w.params["model/onnx"]["path"] = texttest.Path(t, "bert.trace")
	w.ports["model/noise model"] = w.value(t, "model/onnx")
	w.params["model/onnx"]["path"] = net
	w.removeTokens()
	w.writeTexts(t)
	shapes := w.run(t, w.stage(t, "dataset/shapes"), nil)
	for _, port := range w.stage(t, "dataset/shapes").Outputs {
		w.given[port.Type] = shapes.data(port.Name)
	}
	w.params["dataset/units"] = map[string]any{"count": count}
	w.ports["dataset/units model"] = w.value(t, "model/units")
	w.given[stages.Model] = w.models["resnet"]
	w.given[stages.Targets] = stagetest.Items(shapes.Facts["labels"], shapes.Payloads["labels"]...)
	w.given[stages.Maps] = stagetest.Items(nil, drawnMaps()...)
	ranks := w.run(t, w.stage(t, "maps/rank"), w.in(t, w.stage(t, "maps/rank")))
	w.given[stages.Ranks] = ranks.data(w.stage(t, "maps/rank").Outputs[0].Name)
	for _, port := range []string{"insertion", "deletion"} {
		s := w.stage(t, "perturb/"+port)
		curves := w.run(t, s, w.in(t, s)).data("curves")
		w.given[stages.Curves] = curves
		for _, score := range []string{"rise", "mas", "mas-curves"} {
			w.ports["score/"+score+" "+port] = curves
		}
	}
	for _, order := range []string{"morf", "lerf"} {
		ablation := w.stage(t, "perturb/ablation")
		w.params["perturb/ablation"] = map[string]any{"order": order}
		curves := w.run(t, ablation, w.in(t, ablation)).data("curves")
		w.ports["score/abpc "+order] = curves
		ofSegments := curves
		ofSegments.Facts = maps.Clone(curves.Facts)
		ofSegments.Facts["unit"] = "segment"
		w.ports["score/irof curves"] = ofSegments
		road := w.stage(t, "perturb/road")
		w.params["perturb/road"] = map[string]any{"order": order}
		w.ports["score/road "+order] = w.run(t, road, w.in(t, road)).data("curves")
		w.ports["score/arcc "+order] = w.ports["score/road "+order]
		delete(w.params, "perturb/road")
		delete(w.params, "perturb/ablation")
	}
	whole, soft := w.stage(t, "perturb/response"), w.stage(t, "perturb/soft-mask")
	w.ports["perturb/soft-mask whole"] = w.run(t, whole, w.in(t, whole)).data("curves")
	masked := w.run(t, soft, w.in(t, soft)).data("curves")
	w.ports["score/average-drop masked"], w.ports["score/adcc masked"] = masked, masked
	background := w.stage(t, "dataset/background")
	w.given[stages.Background] = w.run(t, background, w.in(t, background)).data("background")
	w.replaceSubsets(t)
	w.ports["model/change other"] = turned(w.given[stages.Images], 1)
	change := w.stage(t, "model/change")
	w.given[stages.Changes] = w.run(t, change, w.in(t, change)).data("changes")
	masking := w.stage(t, "perturb/gradient-masking")
	maskings := w.run(t, masking, w.in(t, masking))
	w.given[stages.Removals] = maskings.data("morf")
	w.ports["score/gae outputs"] = maskings.data("outputs")
	w.ports["score/gae-curve outputs"] = maskings.data("outputs")
	picEnds := w.stage(t, "perturb/pic-ends")
	ends := w.run(t, picEnds, w.in(t, picEnds))
	w.ports["perturb/pic ends"], w.ports["perturb/pic mask"] = ends.data("ends"), ends.data("mask")
	w.params["score/pic"] = map[string]any{"filters": false}
	pic := w.stage(t, "perturb/pic")
	shown := w.run(t, pic, w.in(t, pic))
	w.ports["score/pic curves"], w.ports["score/pic lengths"] = shown.data("curves"), shown.data("lengths")
	areas := w.stage(t, "score/pic")
	w.ports["score/pic-curve curves"] = w.run(t, areas, w.in(t, areas)).data("curves")
	auc := w.stage(t, "score/auc")
	w.given[stages.Scores] = w.run(t, auc, w.in(t, auc)).data("scores")
	friedman := w.stage(t, "stats/friedman")
	for _, port := range []string{"report/heatmap table", "report/intervals table",
		"report/critical-difference table"} {
		w.ports[port] = w.run(t, friedman, w.in(t, friedman)).data("table")
	}
	grid := w.stage(t, "mosaic/grid")
	grids := w.run(t, grid, w.in(t, grid))
	w.given[stages.Boxes] = grids.data("cells")
	w.ports["score/grid-pointing maps"] = stagetest.Items(nil,
		slices.Repeat(drawnMaps()[:1], len(grids.Payloads["cells"]))...)
	w.ports["report/aggatt cells"] = stagetest.Items(grids.Facts["cells"],
		slices.Repeat(grids.Payloads["cells"][:1], count)...)
	two := make([][]byte, count) // classes
	for i := range two {
		two[i] = stages.NewTensor([]int64{int64(i % 2)}, 1).Encode()
	}
	w.ports["mosaic/focus labels"] = stagetest.Items(nil, two...)
	w.ports["mosaic/focus targets"] = w.ports["mosaic/focus labels"]
	for _, port := range []string{"score/lipschitz draws", "score/sensitivity draws",
		"score/rank-correlation other", "score/ssim other", "score/truth truth", "score/adcc again",
		"score/arcc again", "score/relative-stability draws",
		"score/continuity draws", "score/emprt other"} {
		w.ports[port] = turned(w.given[stages.Maps], 1) // the first isn't the original
	}
	w.ports["score/lipschitz noisy"] = turned(w.given[stages.Images], 1)
	w.ports["score/continuity altered"] = turned(w.given[stages.Images], 1)
	return w
}

// replaceSubsets gives what reads replaced subsets those that it takes.
func (w *world) replaceSubsets(t *testing.T) {
	t.Helper()
	w.params["score/infidelity"] = map[string]any{"output": "logit", "map": "contribution"}
	subset := w.stage(t, "perturb/subset")
	for draw, readers := range map[string][]string{
		"fixed": {"score/faithfulness-correlation", "score/infidelity", "score/mu-fidelity",
			"score/sensitivity-n"},
		"single": {"score/faithfulness-estimate", "score/monotonicity-correlation",
			"score/non-sensitivity", "score/single-deletion", "score/tau-loo", "attribute/feature-ablation"},
		"bernoulli":   {"attribute/lime"},
		"shapley":     {"attribute/kernel-shap"},
		"permutation": {"attribute/shapley-sampling"},
	} {
		w.params["perturb/subset"] = map[string]any{"draw": draw, "samples": 10, "unit": "region",
			"sizes": []int{5}, "region": 16}
		r := w.run(t, subset, w.in(t, subset))
		for _, name := range readers {
			w.ports[name+" units"] = r.data("segments")
			for _, port := range []string{"subsets", "responses", "differences"} {
				w.ports[name+" "+port] = r.data(port)
			}
		}
	}
	w.params["perturb/subset"] = map[string]any{"samples": 10}
}

// writeTexts gives texts of five tokens, their maps and rationales to what shows them.
func (w *world) writeTexts(t *testing.T) {
	words := stages.Words{Text: "née אב ok", Tokens: []string{"[CLS]", "né", "##e", "אב", "ok"},
		Offsets: [][2]int{{0, 0}, {0, 2}, {2, 3}, {4, 6}, {7, 9}},
		Special: []bool{true, false, false, false, false}}
	text, err := words.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var maps [][]byte
	for k := range count {
		values := []float32{1, 0.5, -0.25, float32(k) / 8, 0}
		maps = append(maps, stages.NewTensor(values, 1, len(values)).Encode())
	}
	mask := stages.NewTensor([]uint8{stages.Ignored, 1, 1, 0, 0}, 1, 5).Encode()
	w.ports["report/text words"] = stagetest.Items(nil, slices.Repeat([][]byte{text}, count)...)
	w.ports["report/text maps"] = stagetest.Items(nil, maps...)
	w.ports["report/text masks"] = stagetest.Items(nil, slices.Repeat([][]byte{mask}, count)...)
}

// removeTokens gives curves of two texts to what reads them: responses, and how many tokens have changed.
func (w *world) removeTokens() {
	for port, order := range map[string]string{"removed": "deletion", "kept": "insertion"} {
		facts := stages.Facts{"responses": "probability,changed", "order": order, "unit": "token",
			"shares": "0,0.25,0.5,1"}
		w.ports["score/eraser "+port] = stagetest.Items(facts,
			stages.NewTensor([]float64{0.875, 0.5, 0.25, 0.125, 0, 1, 2, 4}, 2, 4).Encode(),
			stages.NewTensor([]float64{0.75, 0.75, 0.5, 0.25, 0, 0, 1, 2}, 2, 4).Encode())
	}
}

func (w *world) stage(t *testing.T, name string) *stages.Stage {
	t.Helper()
	i := slices.IndexFunc(w.stages, func(s *stages.Stage) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no stage is called %s", name)
	}
	return w.stages[i]
}

// A result is what a stage made, and what is known of it.
type result struct {
	stagetest.Result
	items map[string]bool // ports of items
}

// data returns a port's, to give to another stage.
func (r result) data(port string) stages.Data {
	if r.items[port] {
		return stagetest.Items(r.Facts[port], r.Payloads[port]...)
	}
	return stagetest.Value(r.Facts[port], r.Payloads[port][0])
}

func (w *world) value(t *testing.T, name string) stages.Data {
	t.Helper()
	s := w.stage(t, name)
	return w.run(t, s, nil).data(s.Outputs[0].Name)
}

// in returns what is given to a stage's ports, from three cells where a Whole stage compares methods.
func (w *world) in(t *testing.T, s *stages.Stage) map[string][]stages.Data {
	t.Helper()
	in := map[string][]stages.Data{}
	for i, port := range s.Inputs {
		d, ok := w.ports[s.Name+" "+port.Name]
		if !ok {
			d, ok = w.given[port.Type]
		}
		switch {
		case !ok && port.Optional, port.Name == "baselines": // the parameter's
		case port.Again != nil: // of the scores again, which the parameters here don't ask for
		case !ok:
			t.Fatalf("%s: there's nothing to give to port %s", s.Name, port.Name)
		case port.Over: // two steps of both orders
			for k, order := range []string{"morf", "morf", "lerf", "lerf"} {
				in[port.Name] = append(in[port.Name],
					stagetest.At(turned(d, k), "order", order, "step", strconv.Itoa(1+k%2)))
			}
		case (i == 0 || port.Name == "reference") && compares(s):
			for k, method := range []string{"a", "b", "c", "a", "b", "c"} {
				coord := []string{"method", method}
				if w.params[s.Name]["between"] != nil {
					coord = append(coord, "metric", strconv.Itoa(k/3))
				} else if k >= 3 {
					break
				}
				in[port.Name] = append(in[port.Name], stagetest.At(turned(d, k+i), coord...))
			}
		default:
			in[port.Name] = []stages.Data{d}
		}
	}
	return in
}

func compares(s *stages.Stage) bool {
	images := []string{"score/adcc-means", "score/consistency", "score/sufficiency"} // of one cell
	return s.Relation == stages.Whole && len(s.Inputs) > 0 && !slices.Contains(images, s.Name) &&
		slices.Contains([]stages.Type{stages.Scores, stages.Curves, stages.Maps}, s.Inputs[0].Type)
}

// turned returns d with the payloads of its items moved on by k.
func turned(d stages.Data, k int) stages.Data {
	load, n := d.Load, d.Items.Len()
	d.Load = func(i int) ([]byte, error) { return load((i + k) % n) }
	return d
}

// run runs a stage with the world's parameters.
func (w *world) run(t *testing.T, s *stages.Stage, in map[string][]stages.Data) result {
	t.Helper()
	r, err := w.try(s, in)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return r
}

func (w *world) try(s *stages.Stage, in map[string][]stages.Data) (result, error) {
	params := s.NewParams()
	for name, value := range w.params[s.Name] {
		for _, f := range stages.Fields(params) {
			if f.Name == name {
				reflect.ValueOf(params).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(value))
			}
		}
	}
	r := result{items: map[string]bool{}}
	for _, port := range s.Outputs {
		r.items[port.Name] = port.Type.Items
	}
	var err error
	if !s.Device {
		r.Result, err = stagetest.Try(*s, params, in)
		return r, err
	}
	slot := &program.Rehearsal{Pretend: true}
	defer slot.Close()
	r.Result, err = stagetest.TryOn(slot, *s, params, in)
	return r, err
}

// outputs returns the digest of all that a stage makes.
func (w *world) outputs(t *testing.T, s *stages.Stage) string {
	t.Helper()
	models := []string{"resnet"}
	// What lists the nodes of a graph depends on the runtime that simplified it: that of the ViT has others
	// from release to release.
	if s.Device && s.Name != "attribute/lrp-conservation" {
		models = []string{"resnet", "vit"}
	}
	h, refused := "", 0
	for _, m := range models {
		w.given[stages.Model] = w.models[m]
		r, err := w.try(s, w.in(t, s))
		if err != nil {
			if refused++; refused == len(models) {
				t.Errorf("%s: %v", s.Name, err)
			}
			h += "refused "
			continue
		}
		for _, port := range s.Outputs {
			for _, b := range r.Payloads[port.Name] {
				h += stages.Sum(b).String()
			}
			for _, k := range r.Facts[port.Name].Names() {
				h += fmt.Sprintf("%q=%q", k, r.Facts[port.Name][k])
			}
		}
	}
	w.given[stages.Model] = w.models["resnet"]
	return stages.Sum([]byte(h)).String()
}

// vocFolder returns a folder of one image of PASCAL VOC.
func vocFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	photo, err := os.ReadFile(filepath.Join(photographs(t), "cat", "one.png"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"ImageSets/Main/val.txt": "one\n", "JPEGImages/one.jpg": string(photo),
		"Annotations/one.xml": "<annotation><size><width>50</width><height>40</height></size><object>" +
			"<name>cat</name><bndbox><xmin>3</xmin><ymin>4</ymin><xmax>20</xmax><ymax>30</ymax></bndbox>" +
			"</object></annotation>",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// textFiles returns a folder of texts, of tokens and of a tokeniser.
func textFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nfilm\n##s\n!\nשלום\n漢\n",
		"texts.csv": "text,label,rationale\nGoöd films!,pos,\"[[0, 4]]\"\nשָׁלוֹם " +
			"[MASK] 漢字 a b c d e f g,neg,[]\n",
		"tokens.jsonl": `{"pad": 0, "mask": 4, "vocabulary": 11}` + "\n" +
			`{"text": "Good!",` +
			` "ids": [2, 5, 8, 3, 0], "tokens": ["<s>", "good", "!", "</s>", "<pad>"],` +
			` "special": [1, 0, 0, 1, 1], "mask": [1, 1, 1, 1, 0],` +
			` "offsets": [[0, 0], [0, 4], [4, 5], [0, 0], [0, 0]], "types": [0, 1, 1, 0, 0], "label": 1,` +
			` "rationale": [[4, 5]]}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// photographs returns a folder of two small images.
func photographs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for k, name := range []string{"cat", "dog"} {
		img := image.NewNRGBA(image.Rect(0, 0, 50, 40))
		for i := range img.Pix {
			img.Pix[i] = byte(i * (k + 3) * 31)
		}
		img.Set(3, 4, color.White)
		path := filepath.Join(dir, name, "one.png")
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(png.Encode(f, img), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// drawnMaps returns maps with values of both signs, the last with ties.
func drawnMaps() (payloads [][]byte) {
	for k := range count {
		values := make([]float32, side*side)
		for i := range values {
			x, y := float64(i%side), float64(i/side)
			values[i] = float32(math.Round(1e4*math.Sin(x*0.13+float64(k))*math.Cos(y*0.07*float64(k+1)))) /
				1e4
			if k == count-1 {
				values[i] = float32(i / 512 % 3)
			}
		}
		payloads = append(payloads, stages.NewTensor(values, side, side).Encode())
	}
	return payloads
}

// labelFiles writes label maps of four rectangles, of the size of the images.
func labelFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range count {
		labels := make([]int64, side*side)
		for k := range labels {
			labels[k] = int64(k/side/(8+i)%2 + 2*(k%side/32))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("item-%d.npy", i)),
			golden.NPY(stages.NewTensor(labels, side, side)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mapFiles returns a folder with the same maps as files.
func mapFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, b := range drawnMaps() {
		m, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("item-%d.npy", i)), golden.NPY(m),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

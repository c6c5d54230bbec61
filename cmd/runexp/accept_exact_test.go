package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/perturb"
)

// exactYAML asks which method is best of two nets of the quickstart, by curves in PRECISION.
const exactYAML = `name: NAME
seed: 7
axes:
  model:
    vgg: {path: VGG}
    vit: {path: VIT}
  method:
    random:           {uses: attribute/random, with: {reduce: abs-sum}}
    saliency:         {uses: attribute/saliency}
    input-x-gradient: {uses: attribute/input-x-gradient}
    grad-cam:         {uses: attribute/grad-cam}
stages:
  images: {uses: dataset/shapes, with: {count: 240, seed: 1000007}}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: half}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  insertion:
    uses: perturb/insertion
    in: {model: model, images: images, maps: maps}
    with: {ties: random, steps: 8, precision: PRECISION}
  deletion:
    uses: perturb/deletion
    in: {model: model, images: images, maps: maps}
    with: {ties: random, steps: 8, precision: PRECISION}
  rise-score: {uses: score/rise, in: {insertion: insertion, deletion: deletion}}
  board:
    uses: report/leaderboard
    in: {scores: rise-score.difference}
    over: all
    with: {rank: method, exact: EXACT, claims: [input-x-gradient > random]}
publish: [board]
`

func exactExperiment(t *testing.T, name, precision, exact string) string {
	return strings.NewReplacer("NAME", name, "VGG", net(t, "vgg"), "VIT", net(t, "vit"),
		"PRECISION", precision, "EXACT", exact).Replace(exactYAML)
}

// roundingMain stands in for a device with bfloat16: curves of that precision are float32's with responses
// rounded to bfloat16.
func roundingMain() {
	hasPrecision = func(_, _ string) error { return nil }
	for _, s := range []*stages.Stage{&perturb.Deletion, &perturb.Insertion} {
		run, program := s.Run, s.Program
		s.Shared = nil
		s.Run = func(ctx context.Context, params any, e *stages.Env) error {
			exact, rounded := inFloat32(params)
			if err := run(ctx, exact, e); err != nil || !rounded {
				return err
			}
			for i, o := range e.Outputs {
				t, err := stages.DecodeTensor(o.Data)
				if err != nil {
					return err
				}
				values := t.Float64s()
				for k, v := range values {
					bits := (math.Float32bits(float32(v)) + 0x8000) &^ 0xffff
					values[k] = float64(math.Float32frombits(bits))
				}
				e.Outputs[i].Data = stages.NewTensor(values, t.Shape...).Encode()
			}
			return nil
		}
		if program != nil {
			s.Program = func(ctx context.Context, params any, e *stages.Env) (stages.Digest, error) {
				exact, _ := inFloat32(params)
				return program(ctx, exact, e)
			}
		}
	}
	os.Exit(newCommand().start(os.Args[1:]))
}

// inFloat32 returns parameters with float32, and whether they had another precision.
func inFloat32(params any) (exact any, other bool) {
	p := reflect.New(reflect.TypeOf(params).Elem())
	p.Elem().Set(reflect.ValueOf(params).Elem())
	precision := p.Elem().FieldByName("Precision")
	other = precision.String() != stages.Float32
	precision.SetString(stages.Float32)
	return p.Interface(), other
}

// TestExact asks for float32's answer from curves in bfloat16, and compares it with that of float32 curves of
// all images: means lie within its intervals, which are as wide, and no verdict differs that isn't near its
// level.
func TestExact(t *testing.T) {
	runtimeOrSkip(t)
	w := newWorld(t, map[string]string{
		"full.yaml":  exactExperiment(t, "full", "float32", `""`),
		"exact.yaml": exactExperiment(t, "exact", "bfloat16", "float32"),
		"wrong.yaml": exactExperiment(t, "wrong", "float32", "float32"),
	})
	refused := w.variation("runexp-rounding", 2, "check", "wrong.yaml")
	const why = "no scores of board are computed with another precision than float32"
	if !strings.Contains(refused.stderr, why) {
		t.Errorf("nothing to estimate: %s", refused.stderr)
	}
	for _, name := range []string{"full", "exact"} {
		w.variation("runexp-rounding", 0, "run", name+".yaml")
		few := w.variation("runexp-rounding", 0, "run", name+".yaml", "--limit", "2", "--set",
			"images.with.seed=5", "--compare", "0")
		const uncompared = "--compare 0: nothing that cpu in bfloat16 has computed was compared"
		if strings.Contains(few.stderr, uncompared) != (name == "exact") {
			t.Errorf("of %s without comparison: %s", name, few.stderr)
		}
	}
	readme := w.read("artifacts/exact/README.md")
	said := regexp.MustCompile(`This is float32's answer from passes in bfloat16: (\d+) of 240 images were ` +
		`computed in float32, and intervals grew by at most [0-9.]+ %\.`).FindStringSubmatch(readme)
	if said == nil {
		t.Fatalf("the answer doesn't say how much is float32's:\n%s", readme)
	}
	if n, _ := strconv.Atoi(said[1]); n < 64 || n > 160 {
		t.Errorf("%d images were computed in float32", n)
	}
	full, exact := detailsOf(t, w, "full"), detailsOf(t, w, "exact")
	for place, want := range full {
		got := exact[place]
		if got["mean"] < want["low"] || got["mean"] > want["high"] {
			t.Errorf("%s: the mean is %v, outside of [%v, %v]", place, got["mean"], want["low"], want["high"])
		}
		grew := (got["high"] - got["low"]) / (want["high"] - want["low"])
		if !(math.Abs(grew-1) < 0.1) {
			t.Errorf("%s: the interval is %.2f times as wide", place, grew)
		}
		// Where p is near 0.05 the sample decides, as another sample of images would.
		if (want["p"] <= 0.05) != (got["p"] <= 0.05) && (want["p"] < 0.005 || want["p"] > 0.3) {
			t.Errorf("%s: p is %v, of float32 %v", place, got["p"], want["p"])
		}
	}
	plan := w.variation("runexp-rounding", 0, "plan", "exact.yaml").stdout
	const perImage = 2 * 4 * 2 * 9 // passes: nets, methods, curves and their points
	again, _ := strconv.Atoi(said[1])
	ways := fmt.Sprintf(`board: exact by float32 of %d of 240 images: %d passes, [^ ;]+; `+
		`float32 of all: %d passes, [^ ;]+(; precision: float32 alone is the shorter way)?\n`, again,
		perImage*(240+again), perImage*240)
	if !regexp.MustCompile(ways).MatchString(plan) {
		t.Errorf("plan doesn't tell both ways:\n%s", plan)
	}
	// Again is the same, of the store alone.
	if again := w.variation("runexp-rounding", 0, "run", "exact.yaml"); !strings.Contains(
		again.stdout+again.stderr, "nothing to run") {
		t.Errorf("it runs again:\n%s%s", again.stdout, again.stderr)
	}
}

// detailsOf reads the leaderboard's table of all cases, by case and method.
func detailsOf(t *testing.T, w *world, name string) map[string]map[string]float64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(w.read("artifacts/"+name+"/tables/board.details.csv")), "\n")
	header, out := strings.Split(lines[0], ","), map[string]map[string]float64{}
	for _, line := range lines[1:] {
		fields, numbers := strings.Split(line, ","), map[string]float64{}
		for k, f := range fields[2:] {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				v = math.NaN()
			}
			numbers[header[k+2]] = v
		}
		out[fields[0]+" "+fields[1]] = numbers
	}
	if len(out) != 8 {
		t.Fatalf("%d rows", len(out))
	}
	return out
}

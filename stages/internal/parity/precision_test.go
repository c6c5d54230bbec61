package parity

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// precisionTable has a row for each quantity that a precision changes, of each stage that has one: the
// [stages.Deviated] from float32 that all but an eighth of the items stay within, as the probation lets an
// eighth be off, on the net where it is largest, and this net. The tolerance is twice that; a stage that
// would need one above mostRounding has none.
const precisionTable = "../../../docs/precision.csv"

var precisionHeader = []string{"stage", "quantity", "precision", "deviation", "net", "tolerance"}

// mostRounding bounds tolerances: beyond it a result says too little about the one in float32.
const mostRounding = 0.25

// rounding returns the tolerance for the largest deviation of a quantity, as it is published, "" if it is too
// large.
func rounding(deviation float64) string {
	published, err := strconv.ParseFloat(short(deviation), 64)
	if err != nil || 2*published > mostRounding {
		return ""
	}
	return short(2 * published)
}

// roundingStages returns the stages that have a precision, sorted by name.
func roundingStages() (found []*stages.Stage) {
	for _, s := range deviceStages() {
		has := func(f stages.Field) bool { return f.Name == "precision" }
		if slices.ContainsFunc(stages.Fields(s.NewParams()), has) {
			found = append(found, s)
		}
	}
	return found
}

// roundingWorlds returns the nets of the quickstart, for all stages, on images that they were trained for;
// and to write the table those of ImageNet, for curves, as methods take long on them.
func roundingWorlds(t *testing.T) (all, curves []*world) {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vgg", "resnet", "vit"} {
		p := model.ONNXParams{Preset: "half",
			Path: filepath.Join(root, "experiments", "quickstart", name+".onnx")}
		all = append(all, worldOf(t, name, p, "dataset/shapes", map[string]any{"count": 8, "size": 64}))
	}
	if !*update {
		return all, nil
	}
	for _, name := range []string{"imagenet_vit_tiny_patch16_224", "imagenet_mobilenet_v2_keras_1.0_224_dq"} {
		size := picture.Square(224)
		p := model.ONNXParams{Path: stagetest.Shared(t, "data", "models", name+".onnx"), Preset: "half",
			Size: size}
		of := map[string]any{"path": stagetest.Shared(t, "data", "images", "imagenet_val227"), "count": 8,
			"size": size, "filter": "bicubic"}
		curves = append(curves, worldOf(t, name, p, "dataset/folder", of))
	}
	return all, curves
}

// slotIn returns a slot of a class if it has the precision.
func slotIn(t *testing.T, class, precision string) stages.Slot {
	t.Helper()
	if err := modeltest.Runtime(t).Has(stages.Device{Class: class, Precision: precision}); err != nil {
		stagetest.LacksDevice(t, err)
	}
	slot := stagetest.NewSlotOn(stages.Device{Class: class, Threads: 1})
	t.Cleanup(func() { stagetest.Release(slot) })
	return slot
}

// rounded returns by quantity the deviation that all but an eighth of the items stay within which a stage
// makes in a precision.
func (w *world) rounded(slot stages.Slot, s *stages.Stage, precision string) (map[string]float64, error) {
	params := func(precision string) any {
		p := w.params(s)
		set(p, map[string]any{"limit": 0, "steps": 8, "precision": precision})
		return p
	}
	want, err := stagetest.TryOn(w.cpu, *s, params(stages.Float32), w.in(s))
	if err == nil {
		err = shows(s, want)
	}
	if err != nil {
		return nil, fmt.Errorf("in float32: %w", err)
	}
	got, err := stagetest.TryOn(slot, *s, params(precision), w.in(s))
	if err != nil {
		return nil, err
	}
	by := map[string][]float64{} // by quantity and item
	for _, port := range s.Outputs {
		for i, b := range want.Payloads[port.Name] {
			for _, d := range stages.Rounded(port, want.Facts[port.Name], got.Payloads[port.Name][i], b) {
				by[d.Quantity] = append(by[d.Quantity], d.By)
			}
		}
	}
	off := map[string]float64{}
	for quantity, items := range by {
		slices.Sort(items)
		off[quantity] = items[len(items)-1-len(items)/8]
	}
	return off, nil
}

// A roundedRow is a row of the table but for its tolerance, which follows.
type roundedRow struct {
	deviation float64
	net       string
}

// A quantityOf is a quantity of what a stage makes.
type quantityOf struct{ stage, quantity, precision string }

// readRounding returns the published table: what was measured, and the tolerances, "" if there is none.
func readRounding(t *testing.T) (measured map[quantityOf]roundedRow, tolerances map[quantityOf]string) {
	t.Helper()
	measured, tolerances = map[quantityOf]roundedRow{}, map[quantityOf]string{}
	for _, r := range readRows(t, precisionTable, precisionHeader) {
		deviation, err := strconv.ParseFloat(r[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		q := quantityOf{r[0], r[1], r[2]}
		measured[q], tolerances[q] = roundedRow{deviation, r[4]}, r[5]
	}
	return measured, tolerances
}

// TestRounding computes every stage that has a precision in bfloat16, and compares it with float32. With
// -update it writes the table, after each stage, as all of them take long; larger deviations replace smaller
// ones.
func TestRounding(t *testing.T) { checkRounding(t, "cpu", stages.BFloat16) }

// TestRoundingOnWebGPU does the same in float16 on WebGPU, where the adapter has shader-f16. SwiftShader
// lacks it, Mesa's lavapipe has it.
func TestRoundingOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	checkRounding(t, "webgpu", stages.Float16)
}

func checkRounding(t *testing.T, class, precision string) {
	t.Helper()
	slot := slotIn(t, class, precision)
	chosen, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	measured, _ := readRounding(t)
	all, curves := roundingWorlds(t)
	for _, w := range append(all, curves...) {
		list := roundingStages()
		if !*update {
			list = stagetest.Sample(t, 12, list)
			if s, _ := registry.Builtin().Lookup("perturb/deletion"); !slices.ContainsFunc(list,
				func(o *stages.Stage) bool { return o.Name == s.Name }) {
				list = append(list, s) // whose ranks must be exact
			}
		}
		for _, s := range list {
			curve := strings.HasPrefix(s.Name, "perturb/")
			if *update && !chosen.MatchString(s.Name) || slices.Contains(curves, w) && !curve ||
				!*update && !s.Rounding[precision].Passes() {
				continue
			}
			by, err := w.rounded(slot, s, precision)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "in float32: ") {
					t.Errorf("%s on %s: %v", s.Name, w.net, err)
				}
				continue
			}
			for _, quantity := range slices.Sorted(maps.Keys(by)) {
				deviation, most := by[quantity], s.Rounding[precision].Of(quantity)
				t.Logf("%-24s %-12s %-12s %.2g", s.Name, quantity, w.net, deviation)
				if !*update && deviation > most {
					t.Errorf("%s on %s: its %s deviates by %.2g, at most it may by %g", s.Name, w.net,
						quantity, deviation, most)
				}
				q := quantityOf{s.Name, quantity, precision}
				if quantity != "correct" && deviation > measured[q].deviation {
					measured[q] = roundedRow{deviation, w.net}
				}
			}
			if *update {
				writeRounding(t, measured)
			}
		}
	}
}

// TestAgainInBFloat16 checks that curves in bfloat16 are near those in float32, and the same bytes whatever
// the batch, the threads and the other items of a call are.
func TestAgainInBFloat16(t *testing.T) {
	slotIn(t, "cpu", stages.BFloat16)
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	p := model.ONNXParams{Preset: "half", Path: filepath.Join(root, "experiments", "quickstart", "vit.onnx")}
	w := worldOf(t, "vit", p, "dataset/shapes", map[string]any{"count": 3, "size": 64})
	s, _ := registry.Builtin().Lookup("perturb/deletion")
	in := func(precision string, batch, threads int, some ...int) []stages.Output {
		t.Helper()
		e, err := stagetest.Env(s, w.in(s))
		if err != nil {
			t.Fatal(err)
		}
		if some != nil {
			e = e.Some(some)
		}
		slot := stagetest.NewSlotOn(stages.Device{Class: "cpu", Threads: threads})
		defer stagetest.Release(slot)
		e.Slot, e.Batch = slot, batch
		params := w.params(s)
		set(params, map[string]any{"limit": 0, "steps": 8, "precision": precision})
		if err := s.Run(t.Context(), params, e); err != nil {
			t.Fatal(err)
		}
		return e.Outputs
	}
	run := func(batch, threads int, some ...int) []stages.Output {
		return in(stages.BFloat16, batch, threads, some...)
	}
	want := run(16, 1)
	facts := stages.Facts{"responses": "probability,logit,correct"}
	for i, exact := range in(stages.Float32, 16, 1) {
		// What surrounds the net has to be exact: bfloat16 has every second of the ranks above 256.
		off := stages.Rounded(s.Outputs[0], facts, want[i].Data, exact.Data)
		if off[0].Quantity != "probability" || !(off[0].By < 0.02) {
			t.Errorf("item %d deviates by %+v", i, off)
		}
	}
	for name, got := range map[string][]stages.Output{
		"again": run(16, 1), "a batch of 3": run(3, 1), "two threads": run(16, 2),
		"one by one": slices.Concat(run(16, 1, 0), run(16, 1, 1), run(16, 1, 2)),
	} {
		if len(got) != len(want) {
			t.Fatalf("%s: %d results, not %d", name, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i].Data, want[i].Data) {
				t.Errorf("%s: other bytes of item %d", name, i)
			}
		}
	}
}

func writeRounding(t *testing.T, measured map[quantityOf]roundedRow) {
	t.Helper()
	rows := [][]string{}
	for q, r := range measured {
		rows = append(rows, []string{q.stage, q.quantity, q.precision, short(r.deviation), r.net,
			rounding(r.deviation)})
	}
	slices.SortFunc(rows, slices.Compare)
	f, err := os.Create(precisionTable)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(append([][]string{precisionHeader}, rows...)); err != nil {
		t.Fatal(err)
	}
}

// TestPrecisionTable checks that the published table has every stage with a precision that a net of the
// quickstart fits, and that tolerances follow from deviations and are those of the stages.
func TestPrecisionTable(t *testing.T) {
	measured, tolerances := readRounding(t)
	found := map[string]*stages.Stage{}
	for _, s := range roundingStages() {
		found[s.Name] = s
		for _, precision := range []string{stages.BFloat16, stages.Float16} {
			if strings.HasPrefix(s.Name, "perturb/") && s.Rounding[precision] == nil {
				t.Errorf("%s has no row of %s: the flag -update of TestRounding measures it", s.Name,
					precision)
			}
		}
	}
	for q, r := range measured {
		tolerance := tolerances[q]
		if rounding(r.deviation) != tolerance {
			t.Errorf("%v: a tolerance of %s is published for a deviation of %g", q, tolerance, r.deviation)
		}
		s := found[q.stage]
		if s == nil {
			t.Errorf("%s has no precision", q.stage)
			continue
		}
		got := s.Rounding[q.precision].Of(q.quantity)
		if tolerance == "" && !math.IsNaN(got) || tolerance != "" && short(got) != tolerance {
			t.Errorf("%v has the tolerance %g, published is %s", q, got, tolerance)
		}
	}
}

package pipeline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// remoteLab is a lab with a device that computes right.
func remoteLab(t *testing.T, items int) *lab {
	l := newLab(t)
	l.number(items)
	l.devices, l.compute = "webgpu", honest
	return l
}

func honest(_ stages.Device, _ string, x float64) ([]byte, error) { return big(x), nil }

// place returns k of the item ik.
func place(id string) int {
	k, err := strconv.Atoi(strings.TrimLeft(id, "i"))
	if err != nil {
		panic(err)
	}
	return k
}

const remoteMaps = `
name: remote
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/remote, in: {images: images}}
publish: []
`

// TestDevicesAreOnProbation holds which stand-ins of a device pass and which are refused, with what figures;
// that nothing is served of what a refused one made; and that the processor goes on.
func TestDevicesAreOnProbation(t *testing.T) {
	off := func(share float64, when func(k int) bool) func(stages.Device, string, float64) ([]byte, error) {
		return func(_ stages.Device, id string, x float64) ([]byte, error) {
			if when(place(id)) {
				x += share * (x + 299.5) // of the mean of its numbers
			}
			return big(x), nil
		}
	}
	type compute = func(stages.Device, string, float64) ([]byte, error)
	instead := func(payload []byte, when func(k int) bool) compute {
		return func(_ stages.Device, id string, x float64) ([]byte, error) {
			if when(place(id)) {
				return payload, nil
			}
			return big(x), nil
		}
	}
	always := func(int) bool { return true }
	nan := make([]float64, 600)
	nan[7] = math.NaN()
	for name, tc := range map[string]struct {
		compute func(stages.Device, string, float64) ([]byte, error)
		refused string // what the error says; "" if it passes
		off     int    // items
		largest float64
	}{
		"right":                  {honest, "", 0, 0},
		"right within tolerance": {off(9e-4, always), "", 0, 9e-4},
		"one item off":           {off(0.3, func(k int) bool { return k == 3 }), "", 1, 0.3},
		"lies always": {off(2e-3, always),
			"of the last 16 items compared 16 deviate too much", 16, 2e-3},
		"lies after the beginning": {off(0.5, func(k int) bool { return k >= 16 }),
			`deviates by 0.5 and may by 0.001; `, 3, 0.5},
		"lies on a fifth": {off(0.25, func(k int) bool { return k%5 == 2 }), "compared 3 deviate", 3, 0.25},
		"undefined once": {instead(stages.NewTensor(nan, 600).Encode(), func(k int) bool { return k == 5 }),
			`"maps" of item "i5" deviates in shape, or in what is undefined`, 1, math.Inf(1)},
		"another shape": {instead(stages.NewTensor(make([]float64, 4), 2, 2).Encode(), always),
			"in shape, or in what is undefined", 16, math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			l := remoteLab(t, 160)
			l.chunk, l.compute = 16, l.firstBeforeOthers(tc.compute)
			res, err := l.run(remoteMaps)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Close()
			state, why := ended(t, res, "maps")
			p := res.Probation
			if len(p.Programs) != 1 || p.Took <= 0 || p.Items > l.ran["on cpu"] {
				t.Fatalf("compared: %+v", p)
			}
			if c := p.Programs[0]; c.Items != p.Items || c.Stage != "lab/remote" || c.Off < tc.off ||
				tc.refused == "" && c.Off > tc.off ||
				math.Abs(c.Largest.By-tc.largest) > 1e-9 && c.Largest.By != tc.largest {
				t.Errorf("compared: %+v", c)
			}
			if tc.refused == "" {
				// The first 16, less than 16 by their keys, and those of the chunks that are on the two
				// slots, or being stored, while an item is off.
				most := 32 + (2+2)*l.chunk*tc.off
				if tc.off > 0 && p.Items < 32 {
					t.Errorf("%d items compared: all should be while one of the last twenty is off", p.Items)
				}
				if state != schedule.Done || l.ran["on webgpu"] != 160 || p.Items < 18 || p.Items > most {
					t.Errorf("fate %d, %s, %d items of 160 compared", state, why, p.Items)
				}
				l.mustRun(remoteMaps)
				l.want("cached", "on cpu", 0, "on webgpu", 0)
				return
			}
			if state != schedule.Failed || !strings.Contains(why, tc.refused) ||
				!strings.Contains(why, "webgpu computes it otherwise") ||
				!strings.Contains(why, "--devices cpu") {
				t.Errorf("fate %d, %s", state, why)
			}
			res, err = l.run(remoteMaps)
			if err != nil {
				t.Fatal(err)
			}
			res.Close()
			if state, again := ended(t, res, "maps"); state != schedule.Failed ||
				!strings.HasPrefix(again, why) || !strings.Contains(again, "--force maps") {
				t.Errorf("later: fate %d, %s", state, again)
			}
			l.want("later", "on cpu", 0, "on webgpu", 0)
			_, o := l.outlook(remoteMaps)
			if c, _ := find(res.Plan, "maps"); o.State(c).Kind != pipeline.Broken {
				t.Errorf("plan: %v", o.State(c))
			}
			l.devices = "cpu:0"
			fresh := newLab(t)
			fresh.number(160)
			want := fresh.text(fresh.mustRun(remoteMaps), "maps")
			if got := l.text(l.mustRun(remoteMaps), "maps"); got != want {
				t.Error("the processor's results depend on what another device did")
			}
			l.want("on the processor", "source", 0, "on cpu", 160)
		})
	}
}

// firstBeforeOthers has the lab's first chunk be the first of its program: others are computed once that is
// being judged.
func (l *lab) firstBeforeOthers(
	compute func(stages.Device, string, float64) ([]byte, error),
) func(stages.Device, string, float64) ([]byte, error) {
	judging := make(chan struct{})
	l.judging = judging
	return func(d stages.Device, id string, x float64) ([]byte, error) {
		if place(id) >= l.chunk {
			<-judging
		}
		return compute(d, id, x)
	}
}

// TestFifthsAreCaught holds that a device that lies on a fifth of the items, whichever these are, is refused;
// and one that lies on a hundredth isn't. The first have their chance in every item, so that a few of many
// devices may slip through: none of these does.
func TestFifthsAreCaught(t *testing.T) {
	for seed := range uint64(12) {
		for of, refused := range map[int]bool{5: true, 100: false} {
			r := rand.New(rand.NewPCG(seed, 1))
			lies := make([]bool, 320)
			for i := range lies {
				lies[i] = r.IntN(of) == 0
			}
			l := remoteLab(t, len(lies))
			l.chunk = 16
			l.compute = l.firstBeforeOthers(func(_ stages.Device, id string, x float64) ([]byte, error) {
				if lies[place(id)] {
					x += 100
				}
				return big(x), nil
			})
			res, err := l.run(remoteMaps)
			if err != nil {
				t.Fatal(err)
			}
			state, why := ended(t, res, "maps")
			if (state == schedule.Failed) != refused {
				t.Errorf("seed %d, one in %d: fate %d, %s; compared %+v", seed, of, state, why, res.Probation)
			}
			res.Close()
		}
	}
}

// TestFewItemsOnProbation: a single item that is off may be rounding's doing, and is told; two of two aren't.
func TestFewItemsOnProbation(t *testing.T) {
	for items, want := range map[int]schedule.State{1: schedule.Done, 2: schedule.Failed} {
		l := remoteLab(t, items)
		l.compute = offBy(5)
		res, err := l.run(remoteMaps)
		if err != nil {
			t.Fatal(err)
		}
		state, why := ended(t, res, "maps")
		if p := res.Probation; state != want || p.Items != items || p.Programs[0].Off != items {
			t.Errorf("%d items: fate %d, %s, %+v", items, state, why, p)
		}
		res.Close()
	}
}

// TestSampleIsOfItems holds that which items are compared after the first chunk depends on the items alone.
func TestSampleIsOfItems(t *testing.T) {
	compared := func(chunk, compare int, devices string, reverse bool) (ids []string) {
		l := remoteLab(t, 200)
		if l.chunk, l.compare, l.devices = chunk, compare, devices; compare >= 0 {
			l.compute = l.firstBeforeOthers(honest)
		}
		if reverse { // all but the first chunks
			slices.Reverse(l.items[40:])
		}
		l.mustRun(remoteMaps)
		for _, line := range l.saw {
			if id, ok := strings.CutPrefix(line, "cpu "); ok && place(id) >= 40 {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	want := compared(20, 20, "webgpu", false)
	if len(want) < 4 || len(want) > 16 {
		t.Errorf("of 160 items %d are compared", len(want))
	}
	for i, got := range [][]string{compared(20, 0, "webgpu", false), compared(10, 20, "webgpu", false),
		compared(20, 20, "webgpu:0,webgpu:1", false), compared(1, 20, "webgpu", true)} {
		if !slices.Equal(got, want) {
			t.Errorf("%d: compared %v, want %v", i, got, want)
		}
	}
	if all := compared(20, 1, "webgpu", false); len(all) != 160 {
		t.Errorf("one of 1: %d items are compared", len(all))
	}
	if few := compared(20, 60, "webgpu", false); len(few) >= len(want) {
		t.Errorf("one of 60: %d items are compared", len(few))
	}
	if none := compared(20, -1, "webgpu", false); len(none) != 0 {
		t.Errorf("none: %d items are compared", len(none))
	}
}

// TestLargeFirstChunk: of a GPU's large first chunk the processor computes no more than a chunk of its own.
func TestLargeFirstChunk(t *testing.T) {
	l := remoteLab(t, 64)
	l.chunk = 64
	if p := l.mustRun(remoteMaps).Probation; p.Items != 16 || l.ran["on cpu"] != 16 {
		t.Errorf("compared %d items, the processor computed %d", p.Items, l.ran["on cpu"])
	}
}

// TestRefusalsOfPrograms: a refusal is of a stage, its parameters and model, for all cells; what was stored
// of it before isn't served, not even on the processor, until a forced cell has passed; and then what the
// refused device stored of items isn't.
func TestRefusalsOfPrograms(t *testing.T) {
	yaml := func(data string, by int) string {
		return fmt.Sprintf(`
name: remote
stages:
  images: {uses: lab/%s}
  maps:   {uses: lab/remote, in: {images: images}, with: {by: %d}}
publish: []
`, data, by)
	}
	l := remoteLab(t, 64)
	l.chunk = 16
	earlier := []string{"e0=700", "e1=701"}
	l.others = earlier
	l.mustRun(yaml("other", 2)) // passes
	l.others = nil
	for i := range 64 {
		l.others = append(l.others, fmt.Sprintf("i%d=%d", i, i+500))
	}
	l.mustRun(yaml("other", 2)) // passes
	l.mustRun(yaml("other", 3))
	lies := func(_ stages.Device, id string, x float64) ([]byte, error) {
		if place(id) >= 16 {
			x += 1000
		}
		return big(x), nil
	}
	l.compute, l.compare = lies, 2
	res, err := l.run(yaml("source", 2))
	if err != nil {
		t.Fatal(err)
	}
	res.Close()
	if state, why := ended(t, res, "maps"); state != schedule.Failed {
		t.Fatalf("fate %d, %s", state, why)
	}
	l.compute = honest
	l.mustRun(yaml("other", 3)) // other parameters
	l.want("another program", "on webgpu", 0)
	l.devices = "cpu:0"
	l.mustRun(yaml("other", 2))
	if got := l.said(pipeline.CellDone); len(got) != 1 ||
		!strings.Contains(got[0], "which was refused for it since") {
		t.Errorf("said %q", got)
	}
	l.want("on the processor", "on cpu", 64)
	l.devices, l.force = "webgpu", []string{"maps"}
	if f := l.mustRun(yaml("other", 2)).Forced; len(f) != 1 || !f[0].Reproduced || f[0].Within {
		t.Errorf("forced: %v", f)
	}
	l.want("forced", "on webgpu", 64)
	l.force = nil
	l.mustRun(yaml("source", 2))
	l.want("after that", "on webgpu", 64) // not 48: the first chunk was the refused device's
	l.others = earlier
	l.mustRun(yaml("other", 2))
	l.want("what was made before the refusal", "on webgpu", 2)
}

// TestFirstChunkIsOfAProgram holds that cells of one program have one first chunk, and that what isn't kept,
// or shares work, is compared too.
func TestFirstChunkIsOfAProgram(t *testing.T) {
	const yaml = `
name: several
axes:
  by: [2, 3, 5]
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/remote, matrix: [by], in: {images: images}, with: {by: "${by}"}, store: none}
  others: {uses: lab/other}
  again:  {uses: lab/remote, in: {images: others}, with: {by: 2}, store: none}
  scores: {uses: lab/add, in: {maps: maps}}
  more:   {uses: lab/add, in: {maps: again}, with: {plus: 1}}
publish: []
`
	l := remoteLab(t, 12)
	for i := range 12 {
		l.others = append(l.others, fmt.Sprintf("o%d=%d", i, i+50))
	}
	others := l.others
	l.chunk, l.compare = 4, 1<<40
	res := l.mustRun(yaml)
	if p := res.Probation; p.Items != 12 || len(p.Programs) != 1 {
		t.Errorf("compared %+v, want 4 items of 3 programs", p)
	}
	l.want("flowing", "on webgpu", 48)
	if got := l.text(res, "scores[by=3]"); !strings.HasPrefix(got, "i0=0 i1=3 i2=6 ") {
		t.Errorf("got %s", got)
	}

	l = remoteLab(t, 12)
	l.chunk, l.others = 4, others
	l.compute = func(_ stages.Device, _ string, x float64) ([]byte, error) { return big(2 * x), nil }
	res, err := l.run(yaml)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	for cell, want := range map[string]schedule.State{"maps[by=3]": schedule.Failed, "again": schedule.Failed,
		"scores[by=3]": schedule.Blocked, "more": schedule.Blocked} {
		if state, why := ended(t, res, cell); state != want {
			t.Errorf("%s: fate %d, %s", cell, state, why)
		}
	}
	s, err := store.Open(l.storeDir(), store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if in, err := s.Info(); err != nil || in.Items != 24 {
		t.Errorf("records of %+v, %v, want those of the sources", in, err)
	}
}

// TestNothingIsStoredBeforeTheFirstChunkIsJudged: while that is slow, later chunks wait.
func TestNothingIsStoredBeforeTheFirstChunkIsJudged(t *testing.T) {
	l := remoteLab(t, 24)
	l.chunk, l.devices, l.compute, l.compare, l.slowly = 4, "webgpu:0,webgpu:1", offBy(5), 1<<40,
		20*time.Millisecond
	res, err := l.run(remoteMaps)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if state, why := ended(t, res, "maps"); state != schedule.Failed {
		t.Errorf("fate %d, %s", state, why)
	}
	s, err := store.Open(l.storeDir(), store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if in, err := s.Info(); err != nil || in.Items != 24 || l.ran["on webgpu"] < 8 {
		t.Errorf("%d items computed, records of %d, %v; want those of the source", l.ran["on webgpu"],
			in.Items, err)
	}
}

// TestWholeStagesAreOnProbation holds that a stage that wants all items at once is compared with all of them.
func TestWholeStagesAreOnProbation(t *testing.T) {
	const yaml = `
name: whole
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/remoteall, in: {images: images}}
publish: []
`
	l := remoteLab(t, 5)
	if p := l.mustRun(yaml).Probation; p.Items != 1 || p.Programs[0].Off != 0 {
		t.Errorf("compared %+v", p)
	}
	l.want("right", "on webgpu", 5, "on cpu", 5)
	l = remoteLab(t, 5)
	l.compute = func(_ stages.Device, id string, x float64) ([]byte, error) {
		return big(x + float64(place(id)/4)), nil // the last is off
	}
	res, err := l.run(yaml)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	state, why := ended(t, res, "maps")
	if state != schedule.Failed || !strings.Contains(why, `"maps" deviates by`) {
		t.Errorf("fate %d, %s", state, why)
	}
	l.devices = "cpu:0"
	l.mustRun(yaml)
	l.want("on the processor", "on cpu", 5)
}

// TestSharedRunsAreOnProbation holds that of cells that share work each is compared by itself.
func TestSharedRunsAreOnProbation(t *testing.T) {
	l := remoteLab(t, 6)
	l.askew = 3
	res, err := l.run(strings.NewReplacer("BY", "2, 3, 5", "WHEN", "").Replace(sharing))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	for cell, want := range map[string]schedule.State{"maps[by=2]": schedule.Done,
		"maps[by=3]": schedule.Failed, "maps[by=5]": schedule.Done} {
		if state, why := ended(t, res, cell); state != want {
			t.Errorf("%s: fate %d, %s", cell, state, why)
		}
	}
}

// TestSharesAreOnProbation holds that every share of the items judges the devices that it has, and that what
// a share refuses is known where the shares are folded.
func TestSharesAreOnProbation(t *testing.T) {
	l := remoteLab(t, 40)
	l.compute = func(_ stages.Device, id string, x float64) ([]byte, error) {
		if (resolve.Share{K: 1, Of: 2}).Owns(id) {
			x++
		}
		return big(x + 0), nil
	}
	l.compare = 1
	var failed []bool
	for k := range 2 {
		res, err := l.share(remoteMaps, k, 2)
		if err != nil {
			t.Fatal(err)
		}
		state, _ := ended(t, res, "maps")
		failed = append(failed, state == schedule.Failed)
	}
	if !slices.Equal(failed, []bool{false, true}) {
		t.Errorf("shares failed: %v", failed)
	}
	l.devices = "cpu:0"
	if err := l.merged().Close(); err != nil {
		t.Fatal(err)
	}
	l.ran = map[string]int{}
	l.mustRun(remoteMaps)
	l.want("all together", "on cpu", 40)
}

package program_test

import (
	"maps"
	"os"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/ort/standin"
	"github.com/runexp/runexp/stages/stagetest"
)

// A crossing is a use of a program, and what crosses the bus to a device during it, and how often.
type crossing struct {
	name string
	run  func(slot stages.Slot) []float32 // what it returns
	want map[string]int
	down int64 // bytes
}

// TestCrossings holds what crosses the bus to a device, and that the device's results are the processor's.
// The device is a stand-in that computes from what was copied to it alone.
func TestCrossings(t *testing.T) {
	d := standin.New(t)
	here, there := threaded{1, stagetest.NewSlot()}, stagetest.NewSlotOn(d.Device())
	defer stagetest.Release(here.Slot, there)
	for _, c := range crossings(t, "smallcnn") {
		want, got := c.run(here), c.run(there)
		if off := deviation(got, want); !(off < 1e-5) {
			t.Errorf("%s: off by %.2g", c.name, off)
		}
		count, _, down := d.Crossed()
		if !maps.Equal(count, c.want) || down != c.down {
			t.Errorf("%s: crossed %v, %d bytes down; want %v, %d", c.name, count, down, c.want, c.down)
		}
	}
}

// TestBindingOnWebGPU holds that ONNX Runtime's binding copies to a device what is copied to the stand-in.
func TestBindingOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	here, there := threaded{1, stagetest.NewSlot()}, stagetest.NewSlotOn(stages.Device{Class: "webgpu"})
	defer stagetest.Release(here.Slot, there)
	for _, c := range crossings(t, "timm_vit_op17") {
		if off := deviation(c.run(there), c.run(here)); !(off < 1e-4) {
			t.Errorf("%s: off by %.2g", c.name, off)
		}
	}
}

// crossings are uses of every kind of program of a net.
func crossings(t *testing.T, of string) []crossing {
	n := net(t, modeltest.Nets(t, false)[of])
	const batch = 4
	image := func(k int) []float32 {
		x := make([]float32, n.Size())
		wave(k, x)
		return x
	}
	ranks := func(by int) []float32 {
		r := make([]float32, n.Height*n.Width)
		for i := range r {
			r[i] = float32((i * by) % len(r))
		}
		return r
	}
	q := lower.Question{Rules: relevance.Derivative()}
	target := program.Target{Class: 1, Minus: -1}
	answer, pixels := int64(4*batch*n.Classes), int64(4*n.Size())
	return []crossing{
		{"curve", func(slot stages.Slot) (all []float32) {
			c, err := n.Curve(t.Context(), slot, batch)
			must(t, err)
			for _, r := range [][]float32{ranks(5), ranks(7)} {
				c.Set(image(0), image(1), r)
				for k := range 3 {
					must(t, c.Run(t.Context(), []int{k, 10 * k, 50 * k, 99 * k}))
					for row := range batch {
						all = append(all, c.Row(row)...)
					}
				}
			}
			return all
		}, map[string]int{
			"runexp_from": 1, "runexp_to": 1, "runexp_ranks": 2, "runexp_replaced": 6, "run": 6,
		}, 6 * answer},
		{"masked", func(slot stages.Slot) (all []float32) {
			m, err := n.Masked(t.Context(), slot, batch)
			must(t, err)
			for k := range 3 {
				for row := range batch {
					wave(k+row, m.Mask(row))
				}
				for i := range 2 {
					m.Set(image(i), image(5))
					must(t, m.Run(t.Context()))
					all = append(all, m.Row(1)...)
				}
			}
			return all
		}, map[string]int{"runexp_image": 6, "runexp_baseline": 1, "runexp_masks": 3, "run": 6}, 6 * answer},
		{"gradient", func(slot stages.Slot) (all []float32) {
			g, err := n.Gradient(t.Context(), slot, q, batch)
			must(t, err)
			for k := range 2 {
				for row := range batch {
					g.Explain(row, target)
					copy(g.Image(row), image(k+row))
				}
				must(t, g.Run(t.Context()))
				for row := range batch {
					all = append(append(all, g.Gradient(row)...), g.Value(row)...)
				}
			}
			return all
		}, map[string]int{"runexp_images": 2, "runexp_targets": 2, "run": 2}, 2 * (answer + batch*pixels)},
		{"path", func(slot stages.Slot) (all []float32) {
			p, err := n.Path(t.Context(), slot, q, batch)
			must(t, err)
			for i := range 2 {
				p.Set(target, make([]float32, n.Size()), image(i), image(i))
				for k := range 3 {
					at := float64(k) / 3
					must(t, p.Run(t.Context(), []float64{at, at + .1, at + .2}, []float64{.1, .2, .3}))
				}
				all = append(all, p.Sum()...)
			}
			return all
		}, map[string]int{"runexp_from": 1, "runexp_to": 2, "runexp_targets": 2, "runexp_sum": 1,
			"runexp_at": 6, "runexp_weights": 6, "run": 6}, 6 * (answer + pixels)},
		{"deeplift", func(slot stages.Slot) (all []float32) {
			d, err := n.DeepLIFT(t.Context(), slot, q, false, batch)
			must(t, err)
			for k := range 2 {
				d.Reference(image(9))
				for row := range batch {
					d.Explain(row, target)
					copy(d.Image(row), image(k+row))
				}
				must(t, d.Run(t.Context()))
				for row := range batch {
					all = append(append(all, d.Multipliers(row)...), d.Value(row)...)
				}
				all = append(append(all, d.ReferenceValue()...), d.ReferenceAnswer()...)
			}
			return all
		}, map[string]int{"runexp_images": 2, "runexp_targets": 2, "runexp_reference": 2, "run": 3},
			3*answer - 4*int64(n.Classes)*(batch-1) + 2*batch*pixels},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

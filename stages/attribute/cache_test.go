package attribute

import (
	"bytes"
	"testing"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
	"github.com/sourcegraph/conc/pool"
)

// TestCache checks that slots that share programs, and lose them to one another because there's room for
// hardly any, make the bytes that a slot alone makes.
func TestCache(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	var wanted []stagetest.Result
	methods := []*stages.Stage{&Saliency, &DeepLIFT, &GuidedBackprop, &GradCAM, &IntegratedGradients,
		&Occlusion}
	for _, s := range methods {
		wanted = append(wanted, stagetest.Run(t, *s, s.NewParams(), in))
	}
	for name, limit := range map[string]int64{"no room": 1, "little room": 300_000, "room for all": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			cache := device.NewCache(limit)
			workers := pool.New().WithErrors()
			for w := range 4 {
				workers.Go(func() error {
					slot := cache.NewSlot(stages.Device{Class: "cpu", Index: w, Threads: 1})
					for k := range 2 * len(methods) {
						s, want := methods[(k+w)%len(methods)], wanted[(k+w)%len(methods)]
						e, err := stagetest.Env(s, in)
						if err != nil {
							return err
						}
						e.Slot, e.Batch = slot, 8
						end := slot.Begin()
						err = s.Run(t.Context(), s.NewParams(), e)
						end()
						if err != nil {
							return err
						}
						made := 0
						for _, all := range want.Payloads {
							made += len(all)
						}
						if len(e.Outputs) != made {
							t.Errorf("%s makes %d payloads with other slots, %d alone", s.Name,
								len(e.Outputs), made)
						}
						for _, o := range e.Outputs {
							if !bytes.Equal(o.Data, want.Payloads[o.Port][o.Call]) {
								t.Errorf("%s makes other %s of image %d with other slots than alone",
									s.Name, o.Port, o.Call)
							}
						}
					}
					return nil
				})
			}
			if err := workers.Wait(); err != nil {
				t.Fatal(err)
			}
			if err := cache.Trim(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

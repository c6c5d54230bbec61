package dataset

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/behaviour"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// unitsModel returns the model of a behaviour, as model/units makes it.
func unitsModel(t *testing.T, kind, grid, patch string) stages.Data {
	t.Helper()
	f := stages.Facts{"units": kind, "grid": grid, "patch": patch, "weights": "2", "labels": "for\nagainst"}
	n, err := netOf(f)
	if err != nil {
		t.Fatal(err)
	}
	f["height"], f["width"], f["classes"] = fmt.Sprint(n.Side()), fmt.Sprint(n.Side()), "2"
	m, err := n.Model()
	if err != nil {
		t.Fatal(err)
	}
	payload, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return stagetest.Value(f, payload)
}

// TestUnits checks what a draw consists of: the label is what the net predicts, the truth adds up to the
// difference that it makes to the reference, the mask is where it isn't 0, and segments are cells.
func TestUnits(t *testing.T) {
	modeltest.Runtime(t)
	for _, kind := range behaviour.Kinds() {
		net := unitsModel(t, kind, "4", "4")
		in := map[string][]stages.Data{"model": {net}}
		r := stagetest.Run(t, Units, &UnitsParams{Count: 6, Seed: 5, Truth: "shapley"}, in)
		logits := func(port string) (out [][2]float64) {
			images := stagetest.Items(nil, r.Payloads[port]...)
			for _, p := range r.Payloads[port] {
				out = append(out, logitsOf(t, net, p))
			}
			got := stagetest.Run(t, modeltest.Predict, nil,
				map[string][]stages.Data{"model": {net}, "images": {images}})
			if port == "images" {
				for i, target := range got.Payloads["targets"] {
					if !bytes.Equal(target, r.Payloads["labels"][i]) {
						t.Errorf("%s: image %d isn't predicted as labelled", kind, i)
					}
				}
			}
			return out
		}
		z, z0 := logits("images"), logits("reference")
		for i := range z {
			label := tensor(t, r.Payloads["labels"][i]).Int64s()[0]
			truth := tensor(t, r.Payloads["truth"][i]).Float64s()
			mask := tensor(t, r.Payloads["masks"][i]).Raw
			segments := tensor(t, r.Payloads["segments"][i]).Float64s()
			sum := 0.0
			for k, v := range truth {
				sum += v
				if (v != 0) != (mask[k] == 1) {
					t.Fatalf("%s: the mask of pixel %d is %d, its truth %v", kind, k, mask[k], v)
				}
				if segments[k] != float64(k/16/4*4+k%16/4) || v != truth[k/16/4*4*16+k%16/4*4] {
					t.Fatalf("%s: pixel %d is in segment %v, with %v", kind, k, segments[k], v)
				}
			}
			want := z[i][label] - z[i][1-label] - z0[i][label] + z0[i][1-label]
			if math.Abs(sum-want) > 1e-6 {
				t.Errorf("%s: the truth adds up to %v, want %v", kind, sum, want)
			}
			if got := tensor(t, r.Payloads["targets"][i]).Int64s(); got[0] != label || got[1] != 1-label {
				t.Errorf("%s: the targets are %v, the label %d", kind, got, label)
			}
		}
		f := r.Facts["truth"]
		if f["height"] != "16" || f["classes"] != "2" || f["labels"] != "for\nagainst" {
			t.Errorf("%s: facts %v", kind, f)
		}
	}
}

func tensor(t *testing.T, payload []byte) stages.Tensor {
	t.Helper()
	x, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// logitsOf returns a model's outputs for an image.
func logitsOf(t *testing.T, net stages.Data, image []byte) [2]float64 {
	t.Helper()
	n := modeltest.Net(t, net)
	f, err := n.Forward(t.Context(), stagetest.NewSlot(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Normalise(tensor(t, image), f.Image(0)); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return [2]float64{float64(f.Row(0)[0]), float64(f.Row(0)[1])}
}

// TestUnitsStable checks that a draw depends on its number alone, and that another model is refused.
func TestUnitsStable(t *testing.T) {
	in := map[string][]stages.Data{"model": {unitsModel(t, "interaction", "8", "1")}}
	all := stagetest.Run(t, Units, &UnitsParams{Count: 30, Seed: 4, Truth: "shapley"}, in)
	some := stagetest.Run(t, Units, &UnitsParams{Count: 5, First: 20, Seed: 4, Truth: "shapley"}, in)
	for port, payloads := range some.Payloads {
		for i, b := range payloads {
			if !bytes.Equal(b, all.Payloads[port][20+i]) {
				t.Errorf("%s of draw %d differ when draws 0 to 19 aren't wanted", port, 20+i)
			}
		}
	}
	other := map[string][]stages.Data{"model": {stagetest.Value(stages.Facts{"classes": "2"}, []byte("net"))}}
	if _, err := stagetest.Try(Units, &UnitsParams{Count: 1}, other); err == nil {
		t.Error("a model whose true attribution isn't known isn't refused")
	}
}

// TestUnitsFrozen freezes weights and draws: published numbers depend on them.
func TestUnitsFrozen(t *testing.T) {
	h := sha256.New()
	for _, kind := range behaviour.Kinds() {
		net := unitsModel(t, kind, "8", "2")
		b, err := net.Load(0)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
		for _, truth := range []string{"shapley", "intended"} {
			r := stagetest.Run(t, Units, &UnitsParams{Count: 10, First: 3, Seed: 1, Truth: truth},
				map[string][]stages.Data{"model": {net}})
			for _, port := range Units.Outputs {
				h.Write(bytes.Join(r.Payloads[port.Name], nil))
			}
		}
	}
	const want = "3f5d6297be100ce7"
	if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != want {
		t.Errorf("the nets, images and truths of dataset/units moved: %s, want %s", got, want)
	}
}

package mosaic

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestOfficialGAEMosaics compares mosaics and scoring maps with those of the official code, for a batch of
// one mosaic and for one of two, where the code mixes up images and classes.
func TestOfficialGAEMosaics(t *testing.T) {
	for _, tt := range []struct {
		file, net, positive string
		batch               int
	}{
		{"smallcnn_bs4.npz", "smallcnn", "bottom-right", 4},
		{"smallcnn_bs8.npz", "smallcnn", "bottom-right", 8},
		{"timm_resnet_basic_bs4.npz", "timm_resnet_basic_bn", "top-right", 4},
		{"timm_vit_bs4.npz", "timm_vit_op17", "bottom-left", 4},
	} {
		a := golden.Arrays(t, filepath.Join(golden.Dir(t), "gae", tt.file))
		p := &GAEParams{Order: "given", Positive: tt.positive, Variant: official, Batch: tt.batch}
		r := stagetest.Run(t, GAE, p, gaeInput(t, modeltest.Official(t, tt.net, 0), a["x_batch"].Float32s(),
			a["y_batch"].Int64s()))
		want := a["mosaic"].Float32s()
		if len(r.Payloads["images"]) != tt.batch/4 {
			t.Fatalf("%s: %d mosaics, want %d", tt.file, len(r.Payloads["images"]), tt.batch/4)
		}
		const n = 32 * 32
		for m, image := range r.Payloads["images"] {
			if !slices.Equal(floats(t, image), want[m*3*n:(m+1)*3*n]) {
				t.Errorf("%s: mosaic %d differs", tt.file, m)
			}
			if !slices.Equal(floats(t, r.Payloads["positives"][m]),
				a["positive_x"].Float32s()[m*3*n:(m+1)*3*n]) {
				t.Errorf("%s: mosaic %d has another positive image", tt.file, m)
			}
			scoring := floats(t, r.Payloads["scoring"][m])
			for k, w := range a["score_mosaic"].Float64s()[m*3*n : m*3*n+n] {
				if got := float64(scoring[k]); !(math.Abs(got-w) <= 1e-5*(1+math.Abs(w))) {
					t.Fatalf("%s: mosaic %d: the scoring map is %v at %d, want %v", tt.file, m, got, k, w)
				}
			}
		}
	}
}

// gaeInput returns images of smallcnn's size with their classes.
func gaeInput(t *testing.T, model stages.Data, x []float32, classes []int64) map[string][]stages.Data {
	t.Helper()
	const n = 3 * 32 * 32
	var images, labels [][]byte
	for i, c := range classes {
		images = append(images, stages.NewTensor(x[i*n:(i+1)*n], 3, 32, 32).Encode())
		labels = append(labels, stages.NewTensor([]int64{c}, 1).Encode())
	}
	return map[string][]stages.Data{"model": {model}, "images": {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, labels...)}, "labels": {stagetest.Items(nil, labels...)}}
}

func floats(t *testing.T, payload []byte) []float32 {
	t.Helper()
	v, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return v.Float32s()
}

// TestGAEMosaics checks mosaics of the default variant: each image is used once and is a quadrant at half its
// size, the scoring map is 1 in the positive quadrant and nowhere above, and the positive quadrants are drawn
// evenly, or by likelihood.
func TestGAEMosaics(t *testing.T) {
	model := modeltest.Official(t, "smallcnn", 0)
	const n, count = 3 * 32 * 32, 400
	x := make([]float32, count*n)
	for i := range x {
		x[i] = float32(i/n) + 0.25 // every image has its number in all elements
	}
	in := gaeInput(t, model, x, make([]int64, count))
	for _, positive := range []string{"random", "likelihood"} {
		p := GAE.NewParams().(*GAEParams)
		p.Positive = positive
		r := stagetest.Run(t, GAE, p, in)
		used, drawn := map[float32]bool{}, [4]int{}
		for m, payload := range r.Payloads["images"] {
			image, scoring := floats(t, payload), floats(t, r.Payloads["scoring"][m])
			whole := floats(t, r.Payloads["positives"][m])[0]
			for q := range 4 {
				at := q/2*16*32 + q%2*16 // the quadrant's first pixel
				if image[at] != image[at+15*32+15] {
					t.Fatalf("mosaic %d: quadrant %d isn't one image", m, q)
				}
				used[image[at]] = true
				if scoring[at] > 1 {
					t.Errorf("mosaic %d: the scoring map is %v", m, scoring[at])
				}
				if image[at] == whole {
					drawn[q]++
				}
			}
		}
		if len(used) != count {
			t.Errorf("%s: %d of %d images are used", positive, len(used), count)
		}
		for q, times := range drawn {
			if times < 8 || times > 42 { // 25 expected, 4 standard deviations of 4.3
				t.Errorf("%s: the positive image is in quadrant %d of %d mosaics of %d", positive, q, times,
					count/4)
			}
		}
	}
}

// TestGAERefuses checks the refusals of mosaic/gae.
func TestGAERefuses(t *testing.T) {
	model := modeltest.Official(t, "smallcnn", 0)
	three := gaeInput(t, model, make([]float32, 3*3*32*32), make([]int64, 3))
	if _, err := stagetest.Try(GAE, nil, three); err == nil ||
		err.Error() != "too few images for a mosaic: there are 3, and it needs 4" {
		t.Errorf("three images: %v", err)
	}
	foreign := gaeInput(t, model, make([]float32, 4*3*32*32), []int64{0, 1, 10, 3})
	if _, err := stagetest.Try(GAE, nil, foreign); err == nil ||
		err.Error() != `item "item-2": port targets has no class of the model's 10 for it` {
		t.Errorf("a class that the model doesn't have: %v", err)
	}
	if err := (GAEParams{Batch: 6, Variant: official}).Validate(); err == nil {
		t.Error("a batch of 6 is accepted")
	}
	if err := (GAEParams{Batch: 8, Variant: "paper"}).Validate(); err == nil {
		t.Error("a batch of 8 is accepted in variant paper")
	}
	unlabelled := func(port string) bool { return port != "labels" }
	if err := GAE.Check(&GAEParams{Variant: official}, unlabelled); err == nil {
		t.Error("variant official is accepted without labels")
	}
}

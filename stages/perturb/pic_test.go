package perturb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

const pixels32 = 32 * 32

// planes returns image k of interleaved channels as [3,H,W].
func planes(a npy.Array, k int) stages.Tensor {
	if a.DType == "u1" {
		out := make([]uint8, 3*pixels32)
		for i, v := range a.Raw[k*len(out) : (k+1)*len(out)] {
			out[i%3*pixels32+i/3] = v
		}
		return stages.NewTensor(out, 3, 32, 32)
	}
	out := make([]float32, 3*pixels32)
	for i, v := range a.Float32s()[k*len(out) : (k+1)*len(out)] {
		out[i%3*pixels32+i/3] = v
	}
	return stages.NewTensor(out, 3, 32, 32)
}

// merged returns the ranks of maps, pixels of equal value together.
func merged(t *testing.T, m ...[]byte) stages.Data {
	t.Helper()
	p := maps.Rank.NewParams().(*maps.RankParams)
	p.Ties = "merged"
	r := stagetest.Run(t, maps.Rank, p, map[string][]stages.Data{"maps": {stagetest.Items(nil, m...)}})
	return stagetest.Items(nil, r.Payloads["ranks"]...)
}

// picRun runs perturb/pic behind perturb/pic-ends.
func picRun(t *testing.T, p PICParams, in map[string][]stages.Data) stagetest.Result {
	t.Helper()
	given := map[string][]stages.Data{"model": in["model"], "images": in["images"], "targets": in["targets"]}
	r := stagetest.Run(t, PICEnds, &p.PICEndsParams, given)
	in["ends"] = []stages.Data{stagetest.Items(r.Facts["ends"], r.Payloads["ends"]...)}
	if in["mask"] == nil {
		in["mask"] = []stages.Data{stagetest.Items(nil, r.Payloads["mask"]...)}
	}
	return stagetest.Run(t, PIC, &p, in)
}

// TestOfficialPIC compares masks, images, lengths and probabilities with those of the code of MAS. Where
// scipy's triangulation has other diagonals, so that an image differs, its length may differ by 3 percent,
// and its probability isn't compared. The official lengths are libwebp 1.2.4's: nearly all are equal.
func TestOfficialPIC(t *testing.T) {
	same, longer, worst := 0, 0, 0.0
	for _, net := range []string{"smallcnn", "gapcnn"} {
		m := modeltest.Model(t, model.ONNXParams{Path: modeltest.OfficialPath(t, net), Preset: "imagenet"})
		for i := range 4 {
			a := golden.Arrays(t, filepath.Join(golden.Dir(t), "pic",
				fmt.Sprintf("mas_%s_img%d.npz", net, i)))
			name := fmt.Sprintf("%s, image %d", net, i)
			saliency, err := a["saliency"].Tensor()
			if err != nil {
				t.Fatal(err)
			}
			image, random := planes(a["img"], 0), a["random_mask"].Raw
			in := map[string][]stages.Data{"model": {m}, "images": {stagetest.Items(nil, image.Encode())},
				"targets": {stagetest.Items(nil, stages.NewTensor(a["target"].Int64s(), 1).Encode())},
				"maps":    {merged(t, saliency.Encode())},
				"mask":    {stagetest.Items(nil, stages.NewTensor(random, 32, 32).Encode())}}
			p := *PIC.NewParams().(*PICParams)
			p.Variant = "official"
			r := picRun(t, p, in)
			curve, lengths := decode(t, r.Payloads["curves"][0]), decode(t, r.Payloads["lengths"][0])
			rank, err := in["maps"][0].Load(0)
			if err != nil {
				t.Fatal(err)
			}
			places, err := ranksOf(rank, 32, 32, true)
			if err != nil {
				t.Fatal(err)
			}
			made := &partial{PICEndsParams: p.PICEndsParams, net: modeltest.Net(t, m), image: image}
			target := int(a["target"].Int64s()[0])
			for k := range 15 {
				known, official := shown(random, nil, 0), random // the start
				if k > 0 && k < 14 {
					known = shown(random, places.of, atLeastQuantile(p.Thresholds[k-1], pixels32))
					official = a["pixel_masks"].Raw[(k-1)*pixels32 : k*pixels32]
				}
				var blurred stages.Tensor
				if k == 14 {
					known, blurred = shown(random, nil, 1), image
					official = slices.Repeat([]byte{1}, pixels32)
				} else {
					blurred = planes(a["blurred"], k)
				}
				for pixel, is := range known {
					if is != (official[pixel] != 0) {
						t.Fatalf("%s, point %d: pixel %d is shown: %v", name, k, pixel, is)
					}
				}
				got, length, err := made.make(known)
				if err != nil {
					t.Fatal(err)
				}
				if k > 0 && length != lengths[k] {
					t.Errorf("%s, point %d: length %v, by itself %v", name, k, lengths[k], length)
				}
				want := a["webp_len"].Float64s()[k]
				if math.Abs(length-want) > 0.03*want {
					t.Errorf("%s, point %d: length %v, want %v", name, k, length, want)
				}
				if !nearImages(got, normalised(t, made, blurred), 3e-6) {
					continue
				}
				if same++; length != want {
					longer++
				}
				if k == 0 { // its own mask, not this one
					continue
				}
				d := math.Abs(curve[k] - a["softmax"].Float64s()[10*k+target])
				if !(d <= 4*official32(curve[k], curve[15+k])+1e-7) {
					t.Errorf("%s, point %d: the probability %v is off by %v", name, k, curve[k], d)
				}
				worst = max(worst, d)
			}
		}
	}
	t.Logf("%d of 120 images are equal, %d of other lengths; probabilities to %.1e", same, longer, worst)
	if same < 39 || longer > 0 {
		t.Errorf("%d images are equal, %d of them of other lengths", same, longer)
	}
}

func normalised(t *testing.T, m *partial, image stages.Tensor) []float32 {
	t.Helper()
	out := make([]float32, m.net.Size())
	if err := m.net.Normalise(image, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func nearImages(a, b []float32, tolerance float64) bool {
	for i := range a {
		if !(math.Abs(float64(a[i])-float64(b[i])) <= tolerance) {
			return false
		}
	}
	return true
}

// TestOfficialPAIR compares 8-bit images and their lengths with those of the authors of PIC: the masks of
// thresholds 0 and 1, and of those between.
func TestOfficialPAIR(t *testing.T) {
	same, longer := 0, 0
	m := modeltest.Model(t,
		model.ONNXParams{Path: modeltest.OfficialPath(t, "smallcnn"), Preset: "imagenet"})
	for i := range 4 {
		a := golden.Arrays(t, filepath.Join(golden.Dir(t), "pic",
			fmt.Sprintf("pair_smallcnn_img%d_sic.npz", i)))
		saliency, err := a["saliency"].Tensor()
		if err != nil {
			t.Fatal(err)
		}
		rank, err := merged(t, saliency.Encode()).Load(0)
		if err != nil {
			t.Fatal(err)
		}
		places, err := ranksOf(rank, 32, 32, true)
		if err != nil {
			t.Fatal(err)
		}
		made := &partial{PICEndsParams: PICEndsParams{Variant: "paper"}, net: modeltest.Net(t, m),
			image: planes(a["img"], 0)}
		for k, threshold := range a["thresholds"].Float64s() {
			known := shown(a["random_mask"].Raw, places.of, atLeastQuantile(threshold, pixels32))
			if k == 0 {
				known = shown(a["random_mask"].Raw, nil, 0)
			}
			got, length, err := made.make(known)
			if err != nil {
				t.Fatal(err)
			}
			want := a["webp_len"].Float64s()[k]
			if math.Abs(length-want) > 0.03*want {
				t.Errorf("image %d, point %d: length %v, want %v", i, k, length, want)
			}
			if slices.Equal(got, normalised(t, made, planes(a["blurred"], k))) {
				if same++; length != want {
					longer++
				}
			}
		}
	}
	t.Logf("%d of 60 images are equal, %d of other lengths", same, longer)
	if same < 23 || longer > 0 {
		t.Errorf("%d images are equal, %d of them of other lengths", same, longer)
	}
}

// picInput returns two images with maps of distinct values.
func picInput(t *testing.T, change func(v float64) float64) map[string][]stages.Data {
	t.Helper()
	in := officialInput(t, "smallcnn")
	var m [][]byte
	for k := range 2 {
		v := make([]float64, pixels32)
		for i := range v {
			v[i] = change(float64((i*37+11*k)%pixels32) / pixels32)
		}
		m = append(m, stages.NewTensor(v, 32, 32).Encode())
	}
	in["maps"] = []stages.Data{merged(t, m...)}
	return in
}

// TestPICLaws: a constant offset and a factor don't matter while values stay distinct, nor does the batch;
// all pixels of a constant map are shown at once; a map without an order has no curve.
func TestPICLaws(t *testing.T) {
	p := *PIC.NewParams().(*PICParams)
	run := func(change func(v float64) float64) stagetest.Result { return picRun(t, p, picInput(t, change)) }
	plain := run(func(v float64) float64 { return v })
	for name, change := range map[string]func(v float64) float64{
		"offset": func(v float64) float64 { return v + 5 },
		"factor": func(v float64) float64 { return v / 1024 },
	} {
		for port, payloads := range run(change).Payloads {
			if !slices.EqualFunc(payloads, plain.Payloads[port], slices.Equal) {
				t.Errorf("%s: other %s", name, port)
			}
		}
	}
	constant := run(func(float64) float64 { return 0.7 })
	for i := range 2 {
		curve := decode(t, constant.Payloads["curves"][i])
		lengths := decode(t, constant.Payloads["lengths"][i])
		for k := 1; k < 15; k++ {
			if curve[k] != curve[14] || lengths[k] != lengths[14] {
				t.Errorf("item %d, point %d: %v in %v bytes, the image %v in %v", i, k, curve[k], lengths[k],
					curve[14], lengths[14])
			}
		}
		own := decode(t, plain.Payloads["lengths"][i])
		if !(own[0] < own[1] && own[1] < own[4]) {
			t.Errorf("item %d: lengths %v don't grow with the pixels shown", i, own)
		}
	}
	none := run(func(v float64) float64 {
		if v == 0.5 {
			return math.NaN()
		}
		return v
	})
	curve := decode(t, none.Payloads["curves"][0])
	if lengths := decode(t, none.Payloads["lengths"][0]); !math.IsNaN(curve[1]) || !math.IsNaN(lengths[13]) ||
		math.IsNaN(curve[0]) || math.IsNaN(lengths[14]) {
		t.Errorf("a map with NaN: %v, lengths %v", curve[:15], lengths)
	}
}

// TestPICEnds checks the random mask: the same for all images, of its share of pixels, and the start of an
// image that is linear, which the corners tell whole.
func TestPICEnds(t *testing.T) {
	in := officialInput(t, "smallcnn")
	delete(in, "maps")
	r := stagetest.Run(t, PICEnds, nil, in)
	if !slices.Equal(r.Payloads["mask"][0], r.Payloads["mask"][1]) {
		t.Error("two images have different masks")
	}
	n := 0.0
	for _, v := range decode(t, r.Payloads["mask"][0]) {
		n += v
	}
	if n != 10 { // of 1024
		t.Errorf("%v pixels are shown", n)
	}
	linear := make([]uint8, 3*pixels32)
	for i := range linear {
		linear[i] = uint8(i%32*3 + i%pixels32/32*2 + i/pixels32)
	}
	in["images"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(linear, 3, 32, 32).Encode())}
	in["targets"] = []stages.Data{stagetest.Items(nil, stages.NewTensor([]int64{0}, 1).Encode())}
	p := picDefaults()
	p.Random = 0
	r = stagetest.Run(t, PICEnds, &p, in)
	if ends := decode(t, r.Payloads["ends"][0]); ends[0] != ends[1] || ends[6] != ends[7] {
		t.Errorf("the corners of a linear image don't tell it: %v", ends)
	}
	if f := r.Facts["ends"]; f["encoder"] != picDefaults().Encoder {
		t.Errorf("facts %v", f)
	}
}

// TestPICRefuses checks what is refused before anything runs: a model whose images are a line, and ends of
// another variant.
func TestPICRefuses(t *testing.T) {
	p, model := PIC.NewParams(), stages.Facts{"height": "1", "width": "40"}
	_, err := PIC.Facts(p, map[string]stages.Facts{"model": model})
	if err == nil || !strings.Contains(err.Error(), "images of 1×40 pixels can't be triangulated") {
		t.Errorf("a line: %v", err)
	}
	model["height"] = "40"
	ends := stages.Facts{"responses": "probability,logit,correct,bytes", "variant": "official"}
	_, err = PIC.Facts(p, map[string]stages.Facts{"model": model, "ends": ends})
	if err == nil || !strings.Contains(err.Error(), "the ends were made with variant: official") {
		t.Errorf("other ends: %v", err)
	}
}

// BenchmarkPartialImage makes and measures images of 224² pixels at some thresholds.
func BenchmarkPartialImage(b *testing.B) {
	const side = 224
	r := rand.New(rand.NewPCG(1, 2))
	pixels := make([]uint8, 3*side*side)
	for i := range pixels {
		x, y := float64(i%side), float64(i%(side*side)/side)
		pixels[i] = uint8(127 + 80*math.Sin(x*0.05+float64(i/(side*side)))*math.Cos(y*0.04) + 8*r.Float64())
	}
	spec := modelfile.Spec{Height: side, Width: side, Channels: 3, Scale: 1, Mean: make([]float64, 3),
		Std: []float64{1, 1, 1}}
	m := &partial{PICEndsParams: picDefaults(), net: &program.Net{Spec: spec},
		image: stages.NewTensor(pixels, 3, side, side)}
	for _, share := range []float64{0.01, 0.1, 0.5} {
		known := make([]bool, side*side)
		for i := range known {
			known[i] = r.Float64() < share
		}
		b.Run(fmt.Sprint(share), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := m.make(known); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAtLeastQuantile compares with the definition: the values of at least a quantile that lies between two.
func TestAtLeastQuantile(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100, 1024} {
		for _, share := range []float64{0, 0.005, 0.01, 0.21, 0.5, 0.75, 1} {
			at := float64(n-1) * (1 - share) // values are 0 … n−1, so that the quantile is its own index
			want := 0
			for v := range n {
				if float64(v) >= at {
					want++
				}
			}
			if got := atLeastQuantile(share, n); got != want {
				t.Errorf("share %v of %d: %d, want %d", share, n, got, want)
			}
		}
	}
}

package perturb

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/impute"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

func road(change func(*RoadParams)) *RoadParams {
	p := Road.NewParams().(*RoadParams)
	p.Noise = 0
	change(p)
	return p
}

// imagesOf returns the images of the points of one item.
func imagesOf(t *testing.T, p *RoadParams, image []float32, order []int64) [][]float32 {
	t.Helper()
	places := make([]float32, len(order))
	for place, pixel := range order {
		places[pixel] = float32(place)
	}
	net := &program.Net{Spec: modelfile.Spec{Height: 32, Width: 32, Channels: 3, Scale: 1,
		Mean: make([]float64, 3), Std: []float64{1, 1, 1}}}
	r := &removalOf{RoadParams: *p, net: net, image: stages.NewTensor(image, 3, 32, 32),
		ranks: ranks{places, len(places)}}
	if err := r.make(t.Context(), impute.New(32, 32)); err != nil {
		t.Fatal(err)
	}
	return r.images
}

// TestGoldenRoadMasks compares the pixels that are removed with those of the ROAD repository, in both orders:
// its lerf removes what isn't among the most relevant.
func TestGoldenRoadMasks(t *testing.T) {
	a := read(t, "road", "dataset_masks.npz")
	image := make([]float32, 3*1024)
	for i := range image {
		image[i] = float32(math.Sin(float64(i * i))) // so that no imputed pixel is as it was
	}
	for k := range 4 {
		expl, rescaled := a[fmt.Sprint("expl", k)].Float64s(), a[fmt.Sprint("rescaled", k)].Float64s()
		sum := make([]float64, 1024)
		for i := range sum {
			sum[i] = float64(float32(expl[3*i]) + float32(expl[3*i+1]) + float32(expl[3*i+2]))
		}
		low, high := slices.Min(sum), slices.Max(sum)
		for _, order := range []string{"morf", "lerf"} {
			for _, share := range []float64{0.1, 0.3, 0.7} {
				drawn := a[fmt.Sprintf("random_v_%s_%v", order, share)].Float64s()
				noisy := make([]float64, 1024)
				for i := range sum {
					v := (sum[i] - low) / (high - low + 1e-5)
					if d := math.Abs(v - rescaled[i]); !(d <= 1e-6) {
						t.Fatalf("map %d, pixel %d is rescaled to %v, want %v", k, i, v, rescaled[i])
					}
					noisy[i] = rescaled[i] + drawn[i]
				}
				p := road(func(p *RoadParams) {
					p.Order, p.Variant, p.Shares = order, "official", []float64{share}
				})
				got := imagesOf(t, p, image, descending(noisy))
				for i, keep := range a[fmt.Sprintf("mask_%s_%v_%d", order, share, k)].Int64s() {
					if kept := got[1][i] == image[i]; kept != (keep == 1) {
						t.Fatalf("map %d, %s %v: pixel %d is kept: %v", k, order, share, i, kept)
					}
				}
			}
		}
	}
}

// TestGoldenRoadScores compares images and probabilities with those of pytorch-grad-cam, which removes what
// is at or above a percentile: 921, 819, 512, 205 and 103 of 1024 pixels.
func TestGoldenRoadScores(t *testing.T) {
	a := read(t, "road", "pgc_road.npz")
	m := modeltest.Official(t, "smallcnn", 0)
	percentiles := []int{10, 20, 50, 80, 90}
	counts := []int{921, 819, 512, 205, 103}
	shares := make([]float64, len(counts))
	for k, n := range counts {
		shares[k] = float64(n) / 1024
	}
	for _, order := range []string{"morf", "lerf"} {
		p := road(func(p *RoadParams) { p.Order, p.Shares = order, shares })
		for k := range 4 {
			x := a["x"].Float32s()[k*3*1024:][:3*1024]
			cam := a["cams"].Float64s()[k*1024:][:1024]
			images := imagesOf(t, p, x, descending(cam))
			curve := curveOf(t, Road, p, m, x, descending(cam), a["targets"].Int64s()[k])
			for j, percentile := range percentiles {
				name := fmt.Sprintf("%s%d", order, percentile)
				if want, ok := a[name+"_img"]; ok {
					for i, v := range want.Float32s()[k*3*1024:][:3*1024] {
						if d := math.Abs(float64(images[j+1][i] - v)); !(d <= 2e-6) {
							t.Fatalf("%s, image %d: value %d is %v, want %v", name, k, i, images[j+1][i], v)
						}
					}
				}
				want := a[name+"_score"].Float64s()[k]
				got, logit := curve[j+1], curve[len(curve)/3+j+1]
				if !(math.Abs(got-want) <= official32(want, logit)) {
					t.Errorf("%s, image %d: %v, want %v", name, k, got, want)
				}
			}
		}
	}
}

// curveOf runs a stage on one image for a given class.
func curveOf(t *testing.T, s stages.Stage, params any, m stages.Data, x []float32, order []int64,
	class int64) []float64 {
	t.Helper()
	places := make([]uint32, len(order))
	for place, pixel := range order {
		places[pixel] = uint32(place)
	}
	r := stagetest.Run(t, s, params, map[string][]stages.Data{
		"model":   {m},
		"images":  {stagetest.Items(nil, stages.NewTensor(x, 3, 32, 32).Encode())},
		"maps":    {stagetest.Items(nil, stages.NewTensor(places, 32, 32).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{class}, 1).Encode())},
	})
	return decode(t, r.Payloads["curves"][0])
}

// TestRoadNoise checks that noise is on imputed pixels alone, of the given deviation in pixel values, and the
// same for all maps and shares.
func TestRoadNoise(t *testing.T) {
	in := shapesInput(t, "imagenet")
	n := modeltest.Net(t, in["model"][0])
	e, err := stagetest.Env(&Road, in)
	if err != nil {
		t.Fatal(err)
	}
	images := func(noise float64) [][]float32 {
		p := road(func(p *RoadParams) { p.Noise, p.Shares = noise, []float64{0.5, 0.9} })
		r, err := p.newRemoval(e, 0, n)
		if err == nil {
			err = r.make(t.Context(), impute.New(32, 32))
		}
		if err != nil {
			t.Fatal(err)
		}
		return r.images
	}
	without, with := images(0), images(0.05)
	ranks, err := ranksOf(e.In("maps", 0), 32, 32, true)
	if err != nil {
		t.Fatal(err)
	}
	for c := range 3 {
		squares := 0.0
		for i := range 1024 {
			at := c*1024 + i
			d := float64(with[2][at] - without[2][at])
			if removed := ranks.of[i] < 921; removed == (d == 0) {
				t.Fatalf("pixel %d is removed: %v, and has noise %v", i, removed, d)
			}
			squares += d * d / 921
			if before := float64(with[1][at] - without[1][at]); before != 0 && math.Abs(before-d) > 1e-6 {
				t.Fatalf("pixel %d has noise %v at one point and %v at the next", i, before, d)
			}
		}
		if got := math.Sqrt(squares) * n.Std[c]; !(math.Abs(got-0.05) <= 0.004) {
			t.Errorf("channel %d: the noise has a deviation of %v, want 0.05", c, got)
		}
	}
	if !slices.Equal(with[0], without[0]) {
		t.Error("the first point has noise")
	}
}

// TestRoadIsInvariant checks that curves depend on neither batch nor threads, nor on how many images are
// imputed at once.
func TestRoadIsInvariant(t *testing.T) {
	in := officialInput(t, "smallcnn")
	p := Road.NewParams().(*RoadParams)
	modeltest.InvariantStage(t, Road, p, "curves", in)
	want := stagetest.Run(t, Road, p, in).Payloads["curves"]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i, b := range stagetest.Run(t, Road, p, in).Payloads["curves"] {
		if !bytes.Equal(b, want[i]) {
			t.Errorf("item %d has other bytes on one processor", i)
		}
	}
}

// TestRoadUndefined checks that a map without an order has an undefined curve, and that a random order needs
// none.
func TestRoadUndefined(t *testing.T) {
	in := officialInput(t, "smallcnn")
	none := stages.NewTensor([]uint32(nil), 0, 0).Encode()
	second, err := in["maps"][0].Load(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, maps := range [][][]byte{{none, second}, {second, none}, {none, none}} {
		in["maps"] = []stages.Data{stagetest.Items(nil, maps...)}
		for _, order := range []string{"morf", "lerf", "random"} {
			r := stagetest.Run(t, Road, road(func(p *RoadParams) { p.Order = order }), in)
			for i, b := range r.Payloads["curves"] {
				curve := decode(t, b)
				undefined := slices.ContainsFunc(curve, math.IsNaN)
				want := order != "random" && bytes.Equal(maps[i], none)
				if undefined != want || len(curve) != 24 {
					t.Errorf("%s, item %d: %v", order, i, curve)
				}
			}
		}
	}
}

func TestRoadFacts(t *testing.T) {
	for _, tt := range []struct{ order, variant, shares, want string }{
		{"morf", "official", "0,0.101,0.759", ""}, {"lerf", "paper", "0,0.101,0.759", ""},
		{"lerf", "official", "0,0.101,0.759", "official"},
	} {
		p := road(func(p *RoadParams) {
			p.Order, p.Variant, p.Shares = tt.order, tt.variant, []float64{0.101, 0.759}
		})
		got, err := Road.Facts(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := got["curves"]
		if f["shares"] != tt.shares || f["variant"] != tt.want || f["imputation"] != "noisy-linear" ||
			f["order"] != tt.order {
			t.Errorf("%s, %s: %v", tt.order, tt.variant, f)
		}
	}
	for _, shares := range [][]float64{nil, {0.5, 1}, {0}} {
		if err := road(func(p *RoadParams) { p.Shares = shares }).Validate(); err == nil {
			t.Errorf("shares %v were accepted", shares)
		}
	}
}

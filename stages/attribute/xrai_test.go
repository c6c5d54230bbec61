package attribute

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/superpixel"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestRegionsOfPAIR compares XRAI's regions and their values with those of PAIR's saliency 0.2.1, made by
// testdata/xrai.py: at the size at which images are segmented, smaller, larger, and in between.
func TestRegionsOfPAIR(t *testing.T) {
	want, err := stagetest.Arrays("testdata/xrai.npz")
	if err != nil {
		t.Fatal(err)
	}
	arrays, err := stagetest.Arrays("../internal/superpixel/testdata/segments.npz")
	if err != nil {
		t.Fatal(err)
	}
	photo := arrays["photo"].Float64s()
	for _, size := range [][2]int{{224, 224}, {64, 64}, {77, 91}, {150, 260}} {
		height, width := size[0], size[1]
		m := superpixel.Image{Height: height, Width: width, Channels: 3}
		values := make([]float64, height*width)
		for i := range values {
			y, x := i/width, i%width
			values[i] = math.Inf(-1)
			for c := range 3 {
				m.Pix = append(m.Pix, photo[(c*77+y%77)*91+x%91]/255)
				a := (x*x+3*y*(c+1))/40%257 + (x*7919+y*104729+c*1299709)%101 - 150
				values[i] = max(values[i], float64(a)/64)
			}
		}
		for _, algorithm := range []string{"full", "fast"} {
			t.Run(fmt.Sprintf("%dx%d.%s", height, width, algorithm), func(t *testing.T) {
				p := XRAI.NewParams().(*XRAIParams)
				p.Algorithm = algorithm
				got := p.fill(values, p.candidates(m))
				name := fmt.Sprintf("%dx%d.%s", height, width, algorithm)
				regions, means := want[name+".regions"].Int64s(), want[name+".values"].Float64s()
				for i, v := range got {
					if w := means[regions[i]-1]; math.Abs(v-w) > 1e-12 {
						t.Fatalf("pixel (%d, %d) has %g, want %g", i/width, i%width, v, w)
					}
				}
			})
		}
	}
}

// TestXRAIByHand checks both algorithms on four pixels in a row with two overlapping regions.
func TestXRAIByHand(t *testing.T) {
	values := []float64{9, 1, 6, 2}
	for algorithm, want := range map[string][]float64{
		"full": {5, 5, 6, 2}, // {0, 1} has 5, {1, 2, 3} 3 and {2} 6, which comes first
		"fast": {5, 5, 6, 2},
	} {
		p := XRAIParams{Algorithm: algorithm, MinPixels: 1}
		got := p.fill(values, []region{{0, 1}, {1, 2, 3}, {2}})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", algorithm, got, want)
		}
	}
	// Once {0, 1, 2} is chosen, {2, 3} has one new pixel, too few.
	p := XRAIParams{Algorithm: "full", MinPixels: 2}
	mean := 16. / 3
	got := p.fill(values, []region{{0, 1, 2}, {2, 3}})
	if !slices.Equal(got, []float64{mean, mean, mean, 2}) {
		t.Errorf("%v", got)
	}
	if got := p.fill([]float64{3, 3, 3}, []region{{0}, {1, 2}}); !slices.Equal(got, []float64{3, 3, 3}) {
		t.Errorf("of a constant map: %v", got)
	}
	p.MinPixels = 1
	if got := p.fill([]float64{1, 3, 1}, []region{{0, 1}, {1, 2}}); !slices.Equal(got, []float64{2, 2, 1}) {
		t.Errorf("of two equal regions, the first comes first: %v", got)
	}
	nan := math.NaN()
	for _, v := range p.fill([]float64{nan, nan, nan}, []region{{0}, {1, 2}}) {
		if !math.IsNaN(v) {
			t.Errorf("a map of no numbers has %g", v)
		}
	}
}

// TestXRAIIsOfIntegratedGradients checks the whole method: on segments that are given, a value is the mean
// over a segment of the largest channel of integrated gradients from the image's smallest and largest value.
func TestXRAIIsOfIntegratedGradients(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	n := modeltest.Net(t, in["model"][0])
	labels := make([]uint32, 32*32)
	for i := range labels {
		labels[i] = uint32(i / 32 / 20 * 5 * (1 + i%32/13))
	}
	segments := stages.NewTensor(labels, 32, 32).Encode()
	ig := *IntegratedGradients.NewParams().(*IntegratedGradientsParams)
	ig.Output, ig.Reduce, ig.Rule, ig.Steps = "probability", "none", "linspace-mean", 6
	var sums [2][]float64
	for _, choose := range []func([]float32) float32{slices.Min[[]float32], slices.Max[[]float32]} {
		var levels [][]byte
		for k := range sums {
			b, err := in["images"][0].Load(k)
			if err != nil {
				t.Fatal(err)
			}
			image, err := stages.DecodeTensor(b)
			if err != nil {
				t.Fatal(err)
			}
			level := slices.Repeat([]float32{choose(image.Float32s())}, n.Size())
			levels = append(levels, stages.NewTensor(level, 3, 32, 32).Encode())
		}
		in["baselines"] = []stages.Data{stagetest.Items(nil, levels...)}
		for k, m := range mapsOf(t, IntegratedGradients, &ig, in) {
			if sums[k] == nil {
				sums[k] = make([]float64, len(m))
			}
			for i, v := range m {
				sums[k][i] += v / 2
			}
		}
	}
	delete(in, "baselines")
	in["segments"] = []stages.Data{stagetest.Items(nil, segments, segments)}
	p := *XRAI.NewParams().(*XRAIParams)
	p.Steps = 6
	for k, got := range mapsOf(t, XRAI, &p, in) {
		total, count := map[uint32]float64{}, map[uint32]float64{}
		for i, l := range labels {
			total[l] += max(sums[k][i], sums[k][1024+i], sums[k][2048+i])
			count[l]++
		}
		if len(count) < 4 {
			t.Fatalf("%d segments", len(count))
		}
		for i, v := range got {
			if want := total[labels[i]] / count[labels[i]]; math.Abs(v-want) > 1e-5*math.Abs(want)+1e-9 {
				t.Fatalf("image %d, pixel %d: %g, want %g", k, i, v, want)
			}
		}
	}
	small := stages.NewTensor(labels[:6], 2, 3).Encode()
	in["segments"] = []stages.Data{stagetest.Items(nil, small, small)}
	_, err := stagetest.Try(XRAI, &p, in)
	if err == nil || !strings.Contains(err.Error(), `"item-0": port segments: segments of type u32`) {
		t.Errorf("segments of another size: %v", err)
	}
}

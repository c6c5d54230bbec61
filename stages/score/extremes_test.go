package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// extremes make a map's values of two random numbers: a normal one, and one of 0, 1 and 2.
var extremes = map[string]func(normal float64, few int) float32{
	"zero":      func(float64, int) float32 { return 0 },
	"constant":  func(float64, int) float32 { return 0.1 },
	"negative":  func(x float64, _ int) float32 { return -float32(math.Abs(x)) },
	"any":       func(x float64, _ int) float32 { return float32(x) },
	"huge":      func(x float64, _ int) float32 { return float32(math.Copysign(math.MaxFloat32/4, x)) },
	"tiny":      func(_ float64, k int) float32 { return float32(k) * math.SmallestNonzeroFloat32 },
	"tied":      func(_ float64, k int) float32 { return float32(k) },
	"wide":      func(x float64, _ int) float32 { return float32(math.Exp(20 * x)) },
	"nearly":    func(_ float64, k int) float32 { return 1 + float32(k)*1e-7 },
	"undefined": func(_ float64, k int) float32 { return []float32{1, float32(math.NaN()), -1}[k] },
	"infinite":  func(_ float64, k int) float32 { return []float32{1, float32(math.Inf(1)), -1}[k] },
	"fallen":    func(_ float64, k int) float32 { return []float32{1, float32(math.Inf(-1)), -1}[k] },
}

// TestExtremeMaps checks that scores of a map alone, and with a mask, are within the range that they state or
// undefined, for maps of up to three channels, of one pixel and of one row.
func TestExtremeMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][3]int{{1, 1, 1}, {1, 1, 7}, {3, 1, 6}, {3, 5, 4}, {1, 8, 9}, {1, 17, 19}} {
		c, h, w := size[0], size[1], size[2]
		for name, value := range extremes {
			v, mask := make([]float32, c*h*w), make([]uint8, h*w)
			for i := range v {
				v[i] = value(r.NormFloat64(), r.IntN(3))
			}
			for i := range mask {
				mask[i] = []uint8{0, 1, stages.Ignored}[r.IntN(3)]
			}
			in := map[string][]stages.Data{"maps": {stagetest.Items(nil,
				stages.NewTensor(v, c, h, w).Encode())}}
			inRange(t, MSTC, nil, name, in)
			inRange(t, Compactness, nil, name, in)
			inRange(t, Compactness, &CompactnessParams{"positive", 3, 0}, name, in)
			in["masks"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(mask, h, w).Encode())}
			for _, s := range []stages.Stage{ROCAUC, AveragePrecision, WeightedLocalisation,
				EffectiveHeatRatio} {
				inRange(t, s, nil, name, in)
			}
			inRange(t, TopK, &TopKParams{RankingParams: RankingParams{"signed"}, K: 2}, name, in)
		}
	}
}

// inRange checks that a stage's scores of an item are undefined, or finite and in their range.
func inRange(t *testing.T, s stages.Stage, params any, name string, in map[string][]stages.Data) {
	t.Helper()
	r := stagetest.Run(t, s, params, in)
	for port, payloads := range r.Payloads {
		x, err := stages.ScalarOf(payloads[0])
		if err != nil {
			t.Fatal(err)
		}
		if m := stages.MeasureOf(r.Facts[port]); x < m.Low || x > m.High || math.IsInf(x, 0) {
			t.Errorf("%s.%s of a map of kind %s: %v, outside [%v, %v]", s.Name, port, name, x, m.Low, m.High)
		}
	}
}

package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/stagetest"
)

// A linear net answers with the sum of the weights of the pixels shown, divided by all: its curves follow
// from the order of pixels alone.
type linear []float64

// curves returns the insertion and the deletion curve of a map, one pixel a step.
func (l linear) curves(m []float64) (insertion, deletion []byte) {
	sum, total := []float64{0}, 0.0
	for _, i := range metric.Order(m) {
		sum = append(sum, sum[len(sum)-1]+l[i])
		total += l[i]
	}
	var in, out []float64
	for _, s := range sum {
		in, out = append(in, s/total), append(out, 1-s/total)
	}
	return curve(in...), curve(out...)
}

// scored returns the scores of a stage for maps of a linear net: insertion, deletion, difference.
func (l linear) scored(t *testing.T, s stages.Stage, m ...[]float64) (scores [3][]float64) {
	t.Helper()
	var insertion, deletion, payloads [][]byte
	for _, v := range m {
		in, out := l.curves(v)
		insertion, deletion = append(insertion, in), append(deletion, out)
		payloads = append(payloads, stages.NewTensor(v, 1, len(v)).Encode())
	}
	in := map[string][]stages.Data{"insertion": {stagetest.Items(facts("insertion", "1"), insertion...)},
		"deletion": {stagetest.Items(facts("deletion", "1"), deletion...)}}
	if s.Input("maps") != nil {
		in["maps"] = []stages.Data{stagetest.Items(nil, payloads...)}
	}
	r := stagetest.Run(t, s, nil, in)
	for k, port := range []string{"insertion", "deletion", "difference"} {
		scores[k] = scalars(t, stagetest.Items(nil, r.Payloads[port]...))
	}
	return scores
}

// plus returns m + offset, made by maps/offset.
func plus(t *testing.T, m []float64, offset float64) []float64 {
	t.Helper()
	r := stagetest.Run(t, maps.Offset, &maps.OffsetParams{Amount: offset, Of: "absolute", Reduce: "none"},
		map[string][]stages.Data{"maps": {stagetest.Items(nil, stages.NewTensor(m, 1, len(m)).Encode())}})
	return decode(t, r.Payloads["maps"][0])
}

func times(m []float64, by float64) (out []float64) {
	for _, v := range m {
		out = append(out, v*by)
	}
	return out
}

// TestLinearNet checks RISE and MAS on a net of two pixels by hand, and that a map equal to the weights has
// no penalty.
func TestLinearNet(t *testing.T) {
	net := linear{3, 1}
	right, wrong, far := []float64{3, 1}, []float64{1, 3}, []float64{1, 0}
	// Insertion 0 ¾ 1 and 0 ¼ 1, deletion 1 ¼ 0 and 1 ¾ 0.
	rise := net.scored(t, RISE, right, wrong, far)
	want := [3][]float64{{0.625, 0.375, 0.625}, {0.375, 0.625, 0.375}, {0.25, -0.25, 0.25}}
	same(t, "RISE", rise, want)
	// The shares of the map are ¾ 1, ¾ 1 and 1 1 against responses of ¾ 1, ¼ 1 and ¾ 1: penalties of 0, ½, ¼.
	mas := net.scored(t, MAS, right, wrong, far)
	same(t, "MAS", mas, [3][]float64{{0.625, 0.25, 0.5}, {0.375, 0.75, 0.5}, {0.25, -0.5, 0}})
}

func same(t *testing.T, what string, got, want [3][]float64) {
	t.Helper()
	for k := range want {
		for i, w := range want[k] {
			if !(math.Abs(got[k][i]-w) <= 1e-12) {
				t.Errorf("%s, port %d, map %d: %v, want %v", what, k, i, got[k][i], w)
			}
		}
	}
}

// TestBestAndWorst checks the extremes of RISE and MAS on a net that looks at one pixel of n: curves jump at
// the first or the last step. A map of this pixel alone has no penalty.
func TestBestAndWorst(t *testing.T) {
	const n = 100
	net := make(linear, n)
	net[0] = 1
	best, worst := make([]float64, n), make([]float64, n)
	best[0] = 1
	for i := range worst {
		worst[i] = float64(i) // the pixel comes last
	}
	const edge = 0.5 / n
	for _, s := range []stages.Stage{RISE, MAS} {
		got := net.scored(t, s, best)
		same(t, s.Name, got, [3][]float64{{1 - edge}, {edge}, {1 - 2*edge}})
	}
	same(t, "RISE", net.scored(t, RISE, worst), [3][]float64{{edge}, {1 - edge}, {-1 + 2*edge}})
}

// TestRandomMaps checks the means of random maps on a linear net: ½ by either curve, for RISE.
func TestRandomMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	net := make(linear, 50)
	for i := range net {
		net[i] = r.Float64()
	}
	var m [][]float64
	for range 2000 {
		v := make([]float64, len(net))
		for i := range v {
			v[i] = r.Float64()
		}
		m = append(m, v)
	}
	got := net.scored(t, RISE, m...)
	for k, want := range []float64{0.5, 0.5, 0} {
		sum := 0.0
		for _, x := range got[k] {
			sum += x
		}
		if mean := sum / float64(len(m)); math.Abs(mean-want) > 0.01 {
			t.Errorf("port %d: mean %v, want %v", k, mean, want)
		}
	}
}

// TestOffsetsAndFactors: RISE doesn't see a constant offset or a factor that leave values distinct, bit by
// bit; MAS sees the offset and not the factor.
func TestOffsetsAndFactors(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	net, m := make(linear, 64), make([]float64, 64)
	for i := range net {
		net[i], m[i] = r.Float64(), r.Float64()
	}
	for _, s := range []stages.Stage{RISE, MAS} {
		plain := net.scored(t, s, m)
		for _, by := range []float64{0x1p-20, 2, 0x1p40} {
			if got := net.scored(t, s, times(m, by)); got[2][0] != plain[2][0] || got[0][0] != plain[0][0] {
				t.Errorf("%s: a factor of %v makes %v of %v", s.Name, by, got, plain)
			}
		}
		for _, offset := range []float64{0.05, 0.5, 100} {
			got := net.scored(t, s, plus(t, m, offset))
			if equal := got[2][0] == plain[2][0]; equal != (s.Name == RISE.Name) {
				t.Errorf("%s: an offset of %v makes %v of %v", s.Name, offset, got[2][0], plain[2][0])
			}
		}
	}
}

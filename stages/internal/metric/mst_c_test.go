package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// TestGoldenMSTC compares with the definition written with scipy 1.17.1 and scikit-learn 1.9.1. These join a
// pixel to exactly 20 others, of those at one distance whichever a search tree finds first, where here all of
// them are joined. That choice decides about two squares whose corners are as far from each other as from the
// last of their neighbours: there the peer's score depends on which side is up, by 6 %.
func TestGoldenMSTC(t *testing.T) {
	for _, c := range peerCases(t) {
		m := MSTCOf(magnitudes(c.values), c.height, c.width, 0.8, 20)
		if !near(m.Score, c.numbers[scipyMSTC], 1e-12) || m.Points != int(c.numbers[scipyPoints]) ||
			m.Components != int(c.numbers[scipyComponents]) {
			t.Errorf("%s: %+v, want %v of %v points in %v components", c.name, m, c.numbers[scipyMSTC],
				c.numbers[scipyPoints], c.numbers[scipyComponents])
		}
	}
	arrays := golden.Arrays(t, "testdata/compactness.npz")
	peer := arrays["mirror.mst"].Float64s()
	ours := MSTCOf(arrays["mirror.map"].Float64s(), 22, 22, 0.83, 20)
	if slices.Max(peer) < 1.05*slices.Min(peer) || ours.Components != 1 ||
		!near(ours.Score, slices.Min(peer), 1e-12) {
		t.Errorf("two squares: %+v, and the peer's %v", ours, peer)
	}
}

// TestMSTCByHand checks cases computed by hand.
func TestMSTCByHand(t *testing.T) {
	for _, tt := range []struct {
		what          string
		values        []float64
		height, width int
		quantile      float64
		neighbours    int
		want          MSTC
	}{
		// A square of four pixels: A = 1, ℓ = 3, d = 5.
		{"a square", []float64{9, 9, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0}, 3, 4, 0.7, 20,
			MSTC{100 * 5 * 4. / 3, 4, 1}},
		// Three in a row have no area: √A is d, ℓ = 2.
		{"a line", []float64{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 3, 4, 0.8, 20, MSTC{100 * 3. / 2, 3, 1}},
		// Half a square: A = ½, ℓ = 2.
		{"a triangle", []float64{1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 3, 4, 0.8, 20,
			MSTC{100 * 5 * math.Sqrt2 * 3 / 2, 3, 1}},
		// One neighbour each joins the pairs at both ends: the gap of 5 doesn't count. √A is d.
		{"two pairs", []float64{1, 1, 0, 0, 0, 0, 1, 1}, 1, 8, 0.5, 1, MSTC{100 * 4. / 2, 4, 2}},
		// Two neighbours bridge it.
		{"two pairs, joined", []float64{1, 1, 0, 0, 0, 0, 1, 1}, 1, 8, 0.5, 2, MSTC{100 * 4. / 7, 4, 1}},
		// All pixels are at the cut of 0: A = 2·3, ℓ = 11, n = 12.
		{"one pixel", []float64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 3, 4, 0.8, 20,
			MSTC{100 * 5 / math.Sqrt(6) * 12 / 11, 12, 1}},
		{"a lone pixel", []float64{1, 0}, 1, 2, 0.8, 20, MSTC{nan, 1, 1}},
		{"an image of one pixel", []float64{1}, 1, 1, 0.8, 20, MSTC{nan, 1, 1}},
	} {
		got := MSTCOf(tt.values, tt.height, tt.width, tt.quantile, tt.neighbours)
		if !near(got.Score, tt.want.Score, 1e-14) || got.Points != tt.want.Points ||
			got.Components != tt.want.Components {
			t.Errorf("%s: %+v, want %+v", tt.what, got, tt.want)
		}
	}
}

// TestMSTCLaws checks on random maps that the score doesn't depend on their scale, nor on which side is up:
// maps mirrored and transposed score the same, bit by bit, since ties are all joined.
func TestMSTCLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 2))
	for range 60 {
		h, w := 1+r.IntN(14), 2+r.IntN(14)
		levels, at := float64(2+r.IntN(30)), func(y, x int) int { return y*w + x }
		a, scaled := make([]float64, h*w), make([]float64, h*w)
		mirrored, transposed := make([]float64, h*w), make([]float64, h*w)
		for i := range a {
			a[i] = math.Floor(levels * r.Float64() * r.Float64())
			scaled[i] = math.Ldexp(a[i], -40)
		}
		for y := range h {
			for x := range w {
				mirrored[at(y, w-1-x)] = a[at(y, x)]
				transposed[x*h+y] = a[at(y, x)]
			}
		}
		k := 1 + r.IntN(8)
		want := MSTCOf(a, h, w, 0.7, k)
		for what, got := range map[string]MSTC{
			"scaled": MSTCOf(scaled, h, w, 0.7, k), "mirrored": MSTCOf(mirrored, h, w, 0.7, k),
			"transposed": MSTCOf(transposed, w, h, 0.7, k),
		} {
			if got.Points != want.Points || got.Components != want.Components ||
				!near(got.Score, want.Score, 1e-15) {
				t.Errorf("%d×%d, %d neighbours, %s: %+v, want %+v", h, w, k, what, got, want)
			}
		}
	}
}

// TestMSTCForest compares the length of the forest with Prim's algorithm on the full matrix of distances, of
// which pairs that aren't neighbours are left out.
func TestMSTCForest(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 3))
	for range 60 {
		h, w, k := 2+r.IntN(9), 2+r.IntN(9), 1+r.IntN(4)
		g := grid{height: h, width: w, salient: make([]bool, h*w)}
		for i := range g.salient {
			if g.salient[i] = r.Float64() < 0.3; g.salient[i] {
				g.points = append(g.points, i)
			}
		}
		if len(g.points) < 2 {
			continue
		}
		k = min(k, len(g.points)-1)
		gotLength, gotTrees := g.forest(k)
		wantLength, wantTrees := g.prim(k)
		if !near(gotLength, wantLength, 1e-12) || gotTrees != wantTrees {
			t.Errorf("%d×%d, %d neighbours of %v: %v in %d trees, want %v in %d", h, w, k, g.points,
				gotLength, gotTrees, wantLength, wantTrees)
		}
	}
}

// prim returns the length and the number of trees of the minimum spanning forest.
func (g *grid) prim(k int) (length float64, trees int) {
	n := len(g.points)
	square := func(a, b int) int {
		y, x := g.points[a]/g.width-g.points[b]/g.width, g.points[a]%g.width-g.points[b]%g.width
		return y*y + x*x
	}
	reach := make([]int, n) // the square of the distance of the k-th neighbour
	for a := range n {
		for {
			closer := 0
			for b := range n {
				if b != a && square(a, b) <= reach[a] {
					closer++
				}
			}
			if closer >= k {
				break
			}
			reach[a]++
		}
	}
	taken := make([]bool, n)
	for range n {
		best, next := math.MaxInt, -1
		for b := range n {
			for a := range n {
				if s := square(a, b); taken[a] && !taken[b] && s <= max(reach[a], reach[b]) && s < best {
					best, next = s, b
				}
			}
		}
		if next < 0 { // another tree begins
			trees++
			for next = 0; taken[next]; next++ {
			}
		} else {
			length += math.Sqrt(float64(best))
		}
		taken[next] = true
	}
	return length, trees
}

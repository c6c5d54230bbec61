package impute

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// picture returns an image that varies smoothly, with some noise.
func picture(channels, height, width int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, channels*height*width)
	for i := range x {
		c, y, u := i/(height*width), i/width%height, i%width
		x[i] = float32(math.Sin(float64(y)/float64(7+c))*math.Cos(float64(u)/11) + 0.3*r.NormFloat64())
	}
	return x
}

// masks returns shapes of a share of removed pixels.
func masks(height, width int, share float64) map[string][]bool {
	n := height * width
	r := rand.New(rand.NewPCG(3, uint64(100*share)))
	random, blob, border := make([]bool, n), make([]bool, n), make([]bool, n)
	for _, i := range r.Perm(n)[:int(share*float64(n))] {
		random[i] = true
	}
	// As Grad-CAM's maps: a few bumps, of which the lowest or the highest part is removed.
	for i := range n {
		y, x := float64(i/width)/float64(height), float64(i%width)/float64(width)
		blob[i] = math.Hypot(y-0.5, x-0.45) < math.Sqrt(share/math.Pi)*1.02
		border[i] = math.Hypot(y-0.5, x-0.5) > math.Sqrt((1-share)/math.Pi)
	}
	return map[string][]bool{"random": random, "blob": blob, "border": border}
}

// cholesky solves the equations of the removed pixels by Cholesky's factors of the banded matrix, written
// after the paper and independently of the package: for each channel, the pixels' values.
func cholesky(t *testing.T, image []float32, height, width int, removed []bool) []float64 {
	t.Helper()
	n := height * width
	number, unknowns := make([]int, n), 0
	for i, r := range removed {
		number[i] = -1
		if r {
			number[i] = unknowns
			unknowns++
		}
	}
	band := 0
	neighbours := func(i int, f func(j int, weight float64)) {
		for _, d := range [][3]int{{-1, -1, 1}, {-1, 0, 2}, {-1, 1, 1}, {0, -1, 2}, {0, 1, 2}, {1, -1, 1},
			{1, 0, 2}, {1, 1, 1}} {
			if y, x := i/width+d[0], i%width+d[1]; y >= 0 && y < height && x >= 0 && x < width {
				f(y*width+x, float64(d[2])/12)
			}
		}
	}
	for i := range n {
		neighbours(i, func(j int, _ float64) {
			if removed[i] && removed[j] {
				band = max(band, number[i]-number[j])
			}
		})
	}
	channels := len(image) / n
	a := make([][]float64, unknowns) // the band below the diagonal: a[k][band] is the diagonal
	b := make([][]float64, unknowns)
	for i := range n {
		k := number[i]
		if k < 0 {
			continue
		}
		a[k], b[k] = make([]float64, band+1), make([]float64, channels)
		neighbours(i, func(j int, weight float64) {
			a[k][band] += weight
			switch {
			case !removed[j]:
				for c := range channels {
					b[k][c] += weight * float64(image[c*n+j])
				}
			case j < i:
				a[k][band+number[j]-k] -= weight
			}
		})
	}
	for k := range a {
		for j := max(0, k-band); j <= k; j++ {
			sum := a[k][band+j-k]
			for l := max(0, k-band, j-band); l < j; l++ {
				sum -= a[k][band+l-k] * a[j][band+l-j]
			}
			if j == k {
				a[k][band] = math.Sqrt(sum)
			} else {
				a[k][band+j-k] = sum / a[j][band]
			}
		}
	}
	out := make([]float64, channels*n)
	for c := range channels {
		for k := range a {
			for l := max(0, k-band); l < k; l++ {
				b[k][c] -= a[k][band+l-k] * b[l][c]
			}
			b[k][c] /= a[k][band]
		}
		for k := len(a) - 1; k >= 0; k-- {
			b[k][c] /= a[k][band]
			for l := max(0, k-band); l < k; l++ {
				b[l][c] -= a[k][band+l-k] * b[k][c]
			}
		}
		for i := range n {
			out[c*n+i] = float64(image[c*n+i])
			if k := number[i]; k >= 0 {
				out[c*n+i] = b[k][c]
			}
		}
	}
	return out
}

// TestDirect compares imputed pixels with those of a direct solution, for images of several sizes and shapes
// of what is removed, from a poor first guess and from that of a smaller share.
func TestDirect(t *testing.T) {
	for _, size := range [][3]int{{3, 32, 32}, {1, 5, 13}, {3, 1, 40}, {2, 31, 2}, {3, 96, 63}} {
		channels, height, width := size[0], size[1], size[2]
		n := height * width
		m := New(height, width)
		for _, share := range []float64{0.1, 0.5, 0.9, 0.99} {
			for name, removed := range masks(height, width, share) {
				image := picture(channels, height, width)
				want := cholesky(t, image, height, width, removed)
				for i := range image {
					if removed[i%n] {
						image[i] = 50
					}
				}
				for _, first := range []string{"poor", "close"} {
					err := m.Impute(image, removed)
					if kept := slices.Contains(removed, false); !kept {
						if !errors.Is(err, ErrNothingKept) {
							t.Errorf("error %v of a mask that removes all", err)
						}
						break
					} else if err != nil {
						t.Fatal(err)
					}
					if first == "close" && m.iterations > 1 {
						t.Errorf("%v %s %v: %d iterations from the solution", size, name, share, m.iterations)
					}
					for i := range image {
						if d := math.Abs(float64(image[i]) - want[i]); !(d <= 2e-7) {
							t.Fatalf("%v %s %v: value %d is %v, want %v", size, name, share, i, image[i],
								want[i])
						}
					}
				}
			}
		}
	}
}

// TestGoldenImputation compares imputed images with those of the ROAD repository and of Quantus.
func TestGoldenImputation(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "road", "imputation.npz"))
	compare := func(name string, image, mask, want []float32) {
		removed := make([]bool, 1024)
		for i, keep := range mask {
			removed[i] = keep == 0
		}
		m := New(32, 32)
		for c := 0; c < len(image); c += 1024 {
			for i, r := range removed {
				if r {
					image[c+i] = 0
				}
			}
		}
		if err := m.Impute(image, removed); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if d := math.Abs(float64(image[i] - want[i])); !(d <= 1e-6) {
				t.Fatalf("%s: value %d is %v, want %v", name, i, image[i], want[i])
			}
		}
	}
	for k := range 7 {
		name := func(kind string) string { return fmt.Sprintf("%s%d", kind, k) }
		compare(name("case "), a[name("img")].Float32s(), a[name("mask")].Float32s(),
			a[name("imputed")].Float32s())
	}
	q := golden.Arrays(t, filepath.Join(golden.Dir(t), "road", "quantus_imputation.npz"))
	mask := make([]float32, 1024)
	for i := range mask {
		mask[i] = 1
	}
	for _, i := range q["indices"].Int64s() {
		mask[i] = 0
	}
	compare("Quantus", q["arr"].Float32s(), mask, q["imputed"].Float32s())
}

// TestGoldenSystem compares the equations with those of the ROAD repository, whose signs are the opposite.
func TestGoldenSystem(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "road", "imputation.npz"))
	image, mask := a["img5"].Float32s(), a["mask5"].Float32s()
	removed := make([]bool, 1024)
	for i, keep := range mask {
		removed[i] = keep == 0
	}
	m := New(32, 32)
	if err := m.Impute(image, removed); err != nil {
		t.Fatal(err)
	}
	l := m.levels[0]
	want, right := a["A5_dense"].Float64s(), a["b5"].Float64s()
	n := len(l.places)
	if n*n != len(want) {
		t.Fatalf("%d unknowns, want %v", n, a["A5_dense"].Shape)
	}
	for column := range n {
		e, y := make([]pixel, len(l.a)), make([]pixel, len(l.a))
		e[l.places[column]][0] = 1
		l.apply(e, y)
		for row := range n {
			if got := y[l.places[row]][0]; !(math.Abs(got+want[row*n+column]) <= 1e-7) {
				t.Fatalf("coefficient %d, %d is %v, want %v", row, column, got, -want[row*n+column])
			}
		}
		for c := range Channels {
			if got := m.b[l.places[column]][c]; !(math.Abs(got+right[column*Channels+c]) <= 1e-6) {
				t.Fatalf("right-hand side %d, %d is %v, want %v", column, c, got, -right[column*Channels+c])
			}
		}
	}
}

func BenchmarkROAD(b *testing.B) {
	const side = 224
	for _, share := range []float64{0.5, 0.9} {
		for name, removed := range masks(side, side, share) {
			b.Run(fmt.Sprintf("%s %.0f%%", name, 100*share), func(b *testing.B) {
				m := New(side, side)
				image := picture(3, side, side)
				start := append([]float32(nil), image...)
				for i, r := range removed {
					if r {
						start[i], start[side*side+i], start[2*side*side+i] = 0, 0, 0
					}
				}
				for b.Loop() {
					copy(image, start)
					if err := m.Impute(image, removed); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(m.iterations), "iterations")
			})
		}
	}
}

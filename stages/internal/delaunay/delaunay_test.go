package delaunay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// pixels returns the places of the known pixels.
func pixels(known []bool, width int) (points []Point) {
	for i, k := range known {
		if k {
			points = append(points, Point{int32(i % width), int32(i / width)})
		}
	}
	return points
}

// side is positive if d lies inside the circle through a, b, c, negative outside, and 0 on it.
func side(a, b, c, d Point) int {
	row := func(p Point) [3]int {
		x, y := int(p.X-d.X), int(p.Y-d.Y)
		return [3]int{x, y, x*x + y*y}
	}
	p, q, r := row(a), row(b), row(c)
	return p[0]*(q[1]*r[2]-q[2]*r[1]) - p[1]*(q[0]*r[2]-q[2]*r[0]) + p[2]*(q[0]*r[1]-q[1]*r[0])
}

// area is twice the area of a triangle, positive if it's counter-clockwise.
func area(a, b, c Point) int {
	return int(b.X-a.X)*int(c.Y-a.Y) - int(b.Y-a.Y)*int(c.X-a.X)
}

// masks returns random masks of known pixels with corners, from few to all, and regular ones, where nearly
// all circles have more than three points.
func masks(height, width int) (all [][]bool) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(known func(x, y int) bool) {
		m := make([]bool, height*width)
		for i := range m {
			m[i] = known(i%width, i/width)
		}
		for _, i := range []int{0, width - 1, (height - 1) * width, height*width - 1} {
			m[i] = true
		}
		all = append(all, m)
	}
	for _, share := range []float64{0, 0.01, 0.05, 0.2, 0.5, 0.75, 0.95} {
		for range 8 {
			draw(func(int, int) bool { return r.Float64() < share })
		}
	}
	draw(func(int, int) bool { return true })
	draw(func(x, y int) bool { return x%2 == 0 && y%2 == 0 })
	draw(func(x, y int) bool { return (x+y)%3 == 0 })
	draw(func(x, y int) bool { return x == y || x == width-1-y })
	draw(func(x, y int) bool { return (x-8)*(x-8)+(y-8)*(y-8) == 25 }) // twelve on a circle
	return all
}

// TestDelaunay checks the defining property by brute force: no point lies inside the circle of a triangle,
// and the triangles cover the image without overlap.
func TestDelaunay(t *testing.T) {
	const height, width = 17, 19
	for m, known := range masks(height, width) {
		points := pixels(known, width)
		covered := 0
		for _, tri := range Triangulate(points) {
			a, b, c := points[tri[0]], points[tri[1]], points[tri[2]]
			if area(a, b, c) <= 0 {
				t.Fatalf("mask %d: the triangle %v %v %v isn't counter-clockwise", m, a, b, c)
			}
			covered += area(a, b, c)
			for _, d := range points {
				if side(a, b, c, d) > 0 {
					t.Fatalf("mask %d: %v is inside the circle of %v %v %v", m, d, a, b, c)
				}
			}
		}
		if covered != 2*(height-1)*(width-1) {
			t.Errorf("mask %d: triangles cover %d/2 of %d", m, covered, (height-1)*(width-1))
		}
	}
}

// TestTies checks the choice among the triangulations of points on a circle: diagonals begin at the first.
func TestTies(t *testing.T) {
	got := Triangulate([]Point{{0, 0}, {2, 0}, {0, 2}, {2, 2}})
	for _, tri := range got {
		slices.Sort(tri[:])
		if tri[0] != 0 || tri[2] != 3 {
			t.Errorf("the square's triangle %v doesn't have the diagonal from the first point", tri)
		}
	}
	circle := []Point{{5, 0}, {2, 1}, {8, 1}, {1, 2}, {9, 2}, {0, 5}, {10, 5}, {1, 8}, {9, 8}, {2, 9},
		{8, 9}, {5, 10}} // of radius 5
	got = append(got, Triangulate(circle)...)
	if len(got) != 2+len(circle)-2 {
		t.Fatalf("%d triangles", len(got))
	}
	for _, tri := range got[2:] {
		if min(tri[0], tri[1], tri[2]) != 0 {
			t.Errorf("the triangle %v of the circle doesn't begin at its first point", tri)
		}
	}
	for _, line := range [][]Point{nil, {{1, 1}}, {{0, 0}, {5, 5}}, {{0, 0}, {1, 1}, {2, 2}, {7, 7}}} {
		if tri := Triangulate(line); len(tri) != 0 {
			t.Errorf("%v has the triangles %v", line, tri)
		}
	}
}

// TestFillIsLinear checks that a plane is reproduced exactly, with weights that sum to their total, and that
// every pixel is set once at least.
func TestFillIsLinear(t *testing.T) {
	const height, width = 17, 19
	for m, known := range masks(height, width) {
		set := slices.Clone(known)
		Fill(known, height, width, func(pixel int, from [3]Weight, total int) {
			set[pixel] = true
			x, y, sum := 0, 0, 0
			for _, f := range from {
				if f.Parts < 0 || !known[f.Pixel] {
					t.Fatalf("mask %d: pixel %d takes %d parts of pixel %d", m, pixel, f.Parts, f.Pixel)
				}
				x, y, sum = x+f.Parts*(f.Pixel%width), y+f.Parts*(f.Pixel/width), sum+f.Parts
			}
			if sum != total || x != total*(pixel%width) || y != total*(pixel/width) {
				t.Fatalf("mask %d: pixel %d of %v/%d", m, pixel, from, total)
			}
		})
		if i := slices.Index(set, false); i >= 0 {
			t.Errorf("mask %d: pixel %d isn't filled", m, i)
		}
	}
}

// TestOfficialFill compares with scipy.griddata on the images of the official code, some of integers. Where
// more than three points lie on the circle around a pixel, Delaunay triangulations differ in their diagonals:
// there scipy's value must be that of a triangle of points on this circle.
func TestOfficialFill(t *testing.T) {
	dir := filepath.Join(golden.Dir(t), "pic")
	var c comparison
	a := golden.Arrays(t, filepath.Join(dir, "blur_griddata.npz"))
	for i := range 3 {
		c.image(t, fmt.Sprint("blur_griddata ", i), a[fmt.Sprint("img", i)].Float64s(),
			a[fmt.Sprint("blur", i)].Float64s(), a[fmt.Sprint("mask", i)].Raw, 2e-7)
	}
	for _, net := range []string{"smallcnn", "gapcnn"} {
		for i := range 4 {
			name := fmt.Sprintf("mas_%s_img%d.npz", net, i)
			a := golden.Arrays(t, filepath.Join(dir, name))
			blurred := a["blurred"].Float64s()
			for k := range 14 {
				mask := a["random_mask"].Raw
				if k > 0 {
					mask = a["pixel_masks"].Raw[(k-1)*side32*side32 : k*side32*side32]
				}
				c.image(t, fmt.Sprint(name, " ", k), a["img"].Float64s(),
					blurred[k*3*side32*side32:(k+1)*3*side32*side32], mask, 2e-7)
			}
			name = fmt.Sprintf("pair_%s_img%d_sic.npz", net, i)
			a = golden.Arrays(t, filepath.Join(dir, name))
			// Scipy's weights are rounded, and so may halves be.
			c.image(t, name, a["img"].Float64s(), a["blurred"].Float64s()[:3*side32*side32],
				a["random_mask"].Raw, 0.5+1e-9)
		}
	}
	t.Logf("%d pixels, %d of them with other diagonals in scipy", c.pixels, c.other)
	if c.pixels < 50000 || c.other*20 > c.pixels {
		t.Errorf("%d pixels were compared, %d of them with other diagonals", c.pixels, c.other)
	}
}

const side32 = 32

type comparison struct{ pixels, other int }

func (n *comparison) image(t *testing.T, name string, image, want []float64, mask []byte, tolerance float64) {
	t.Helper()
	const last = side32*side32 - 1
	known := make([]bool, len(mask))
	for i, m := range mask {
		known[i] = m != 0
	}
	known[0], known[side32-1], known[last-side32+1], known[last] = true, true, true, true
	points := pixels(known, side32)
	place := func(i int) Point { return Point{int32(i % side32), int32(i / side32)} }
	agrees := func(pixel int, from [3]Weight, total int) bool {
		for c := range 3 {
			v := 0.0
			for _, f := range from {
				v += float64(f.Parts) * image[3*f.Pixel+c]
			}
			if !(math.Abs(v/float64(total)-want[3*pixel+c]) <= tolerance) {
				return false
			}
		}
		return true
	}
	Fill(known, side32, side32, func(pixel int, from [3]Weight, total int) {
		n.pixels++
		if agrees(pixel, from, total) {
			return
		}
		n.other++
		var circle []Point
		for _, p := range points {
			if side(place(from[0].Pixel), place(from[1].Pixel), place(from[2].Pixel), p) == 0 {
				circle = append(circle, p)
			}
		}
		for i, a := range circle {
			for k, b := range circle {
				for _, c := range circle[k+1:] {
					p := place(pixel)
					w, u, v := area(p, b, c), area(a, p, c), area(a, b, p)
					if all := area(a, b, c); all > 0 && w >= 0 && u >= 0 && v >= 0 && i != k &&
						agrees(pixel, [3]Weight{{at(a), w}, {at(b), u}, {at(c), v}}, all) {
						return
					}
				}
			}
		}
		t.Errorf("%s: pixel %d is that of no triangle on its circle of %d points", name, pixel, len(circle))
	})
}

func at(p Point) int { return int(p.Y)*side32 + int(p.X) }

func BenchmarkFill(b *testing.B) {
	const n = 224
	r := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{0.01, 0.1, 0.5, 0.75} {
		known := make([]bool, n*n)
		for i := range known {
			known[i] = r.Float64() < share
		}
		known[0], known[n-1], known[n*n-n], known[n*n-1] = true, true, true, true
		b.Run(fmt.Sprint(share), func(b *testing.B) {
			for b.Loop() {
				Fill(known, n, n, func(int, [3]Weight, int) {})
			}
		})
	}
}

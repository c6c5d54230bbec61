package attribute

import "math"

// Limits of [principal]: the size of a basis, how often it is built anew, and the residual at which the
// vector is found, relative to the eigenvalue.
const (
	krylovSize     = 24
	krylovRestarts = 400
	krylovResidual = 1e-13
)

// principal returns a unit eigenvector of the largest eigenvalue of a symmetric positive semidefinite matrix,
// zeros for the matrix of zeros: a Lanczos iteration that starts again from the best vector of its basis.
// Bases are orthogonalised twice. If the largest eigenvalue is a multiple one, the vector is one of many, and
// the same one every time.
func principal(matrix [][]float64) []float64 {
	v := make([]float64, len(matrix))
	for k := range v {
		v[k] = math.Sin(float64(k*k%1009 + 1)) // no structure that a matrix has
	}
	for range krylovRestarts {
		v = times(matrix, v)
		if normalise(v) == 0 {
			return v
		}
		basis, images := krylov(matrix, v)
		small := make([][]float64, len(basis))
		for i := range basis {
			for j := range basis {
				small[i] = append(small[i], dot(basis[i], images[j]))
			}
		}
		best := firstOfSmall(small)
		v = combination(basis, best)
		image := combination(images, best)
		value, rest := dot(v, image), 0.0
		for k := range v {
			d := image[k] - float64(value*v[k])
			rest += float64(d * d)
		}
		if !(math.Sqrt(rest) > krylovResidual*value) {
			break
		}
	}
	normalise(v)
	return v
}

func times(matrix [][]float64, v []float64) []float64 {
	out := make([]float64, len(v))
	for i, row := range matrix {
		out[i] = dot(row, v)
	}
	return out
}

func combination(vectors [][]float64, weights []float64) []float64 {
	out := make([]float64, len(vectors[0]))
	for i, v := range vectors {
		for k := range out {
			out[k] += float64(weights[i] * v[k])
		}
	}
	return out
}

// krylov returns an orthonormal basis of v, Mv, M²v …, and the basis times M.
func krylov(matrix [][]float64, v []float64) (basis, images [][]float64) {
	for len(basis) < min(krylovSize, len(v)) {
		basis = append(basis, v)
		image := times(matrix, v)
		images = append(images, image)
		before := math.Sqrt(dot(image, image))
		next := append([]float64(nil), image...)
		for range 2 {
			for _, b := range basis {
				along := dot(b, next)
				for k := range next {
					next[k] -= float64(along * b[k])
				}
			}
		}
		if !(normalise(next) > 1e-14*before) {
			break
		}
		v = next
	}
	return basis, images
}

// firstOfSmall returns the eigenvector of the largest eigenvalue of a small symmetric matrix, which it
// overwrites, by Jacobi's rotations.
func firstOfSmall(a [][]float64) []float64 {
	vectors := make([][]float64, len(a)) // in rows
	for i := range vectors {
		vectors[i] = make([]float64, len(a))
		vectors[i][i] = 1
	}
	for range 30 { // sweeps; it converges in fewer
		for p := range a {
			for q := p + 1; q < len(a); q++ {
				rotate(a, vectors, p, q)
			}
		}
	}
	best := 0
	for i := range a {
		if a[i][i] > a[best][best] {
			best = i
		}
	}
	return vectors[best]
}

// rotate makes the elements p,q of a symmetric matrix 0.
func rotate(a, vectors [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
	c := 1 / math.Hypot(t, 1)
	s := t * c
	turn := func(x, y *float64) {
		*x, *y = float64(c**x)-float64(s**y), float64(s**x)+float64(c**y)
	}
	for k := range a {
		turn(&a[k][p], &a[k][q])
	}
	for k := range a {
		turn(&a[p][k], &a[q][k])
		turn(&vectors[p][k], &vectors[q][k])
	}
}

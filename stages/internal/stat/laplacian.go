package stat

import "gonum.org/v1/gonum/mat"

// Parts numbers from 0 the parts into which methods fall that have been compared, directly or through others,
// in the order of their first methods. wins is that of [Wins].
func Parts(wins [][]float64) []int {
	part := make([]int, len(wins))
	for p := range part {
		part[p] = -1
	}
	next := 0
	for first := range part {
		if part[first] >= 0 {
			continue
		}
		part[first] = next
		for reached := []int{first}; len(reached) > 0; {
			p := reached[0]
			reached = reached[1:]
			for q := range part {
				if part[q] < 0 && wins[p][q]+wins[q][p] > 0 {
					part[q] = next
					reached = append(reached, q)
				}
			}
		}
		next++
	}
	return part
}

// solveLaplacian returns the solution x of L·x = b whose sum is 0 in each part of the graph. L is the
// Laplacian of a graph with symmetric weights ≥ 0: the sums of its rows on the diagonal, minus the weights
// elsewhere; the sum of b is 0 in each part.
func solveLaplacian(weights [][]float64, part []int, b []float64) []float64 {
	m := len(weights)
	l := mat.NewSymDense(m, nil)
	for p := range m {
		sum := 0.0
		for q := range m {
			sum += weights[p][q]
		}
		for q := p; q < m; q++ {
			v := -weights[p][q]
			if p == q {
				v = sum
			}
			// The ones make the matrix positive definite, and add 0 to a solution whose sum is 0.
			if part[p] == part[q] {
				v++
			}
			l.SetSym(p, q, v)
		}
	}
	var c mat.Cholesky
	c.Factorize(l)
	var x mat.VecDense
	// An error would only say that the matrix is badly conditioned; weights are whole numbers or shares of
	// such, far from that.
	_ = c.SolveVecTo(&x, mat.NewVecDense(m, b))
	return x.RawVector().Data
}

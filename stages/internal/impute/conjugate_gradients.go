package impute

import (
	"fmt"
	"math"
)

// most is how many iterations are tried; about ten are needed.
const most = 200

// solve solves the equations of the removed pixels from the values that they have, until the preconditioner
// finds no error above the tolerance: the preconditioned conjugate gradients of Hestenes and Stiefel, as in
// Saad, "Iterative Methods for Sparse Linear Systems", 2003, algorithm 9.1, for each channel.
func (m *Imputer) solve(tolerance float64) error {
	l := m.levels[0]
	l.apply(m.x, m.q)
	for _, i := range l.places {
		for c := range Channels {
			m.r[i][c] = m.b[i][c] - m.q[i][c]
		}
		m.p[i] = pixel{}
	}
	var was pixel
	for m.iterations = 0; m.iterations < most; m.iterations++ {
		error, product := m.precondition()
		if error <= tolerance {
			return nil
		}
		beta := ratio(product, was)
		was = product
		for _, i := range l.places {
			p, z := &m.p[i], &m.z[i]
			p[0] = z[0] + beta[0]*p[0]
			p[1] = z[1] + beta[1]*p[1]
			p[2] = z[2] + beta[2]*p[2]
		}
		l.apply(m.p, m.q)
		var curvature pixel
		for _, i := range l.places {
			p, q := &m.p[i], &m.q[i]
			curvature[0] += p[0] * q[0]
			curvature[1] += p[1] * q[1]
			curvature[2] += p[2] * q[2]
		}
		alpha := ratio(product, curvature)
		for _, i := range l.places {
			x, r, p, q := &m.x[i], &m.r[i], &m.p[i], &m.q[i]
			x[0] += alpha[0] * p[0]
			x[1] += alpha[1] * p[1]
			x[2] += alpha[2] * p[2]
			r[0] -= alpha[0] * q[0]
			r[1] -= alpha[1] * q[1]
			r[2] -= alpha[2] * q[2]
		}
	}
	return fmt.Errorf("the imputation didn't converge in %d iterations", most)
}

// precondition sets z to about the error of x, and returns its largest magnitude and the product of r and z.
func (m *Imputer) precondition() (error float64, product pixel) {
	l := m.levels[0]
	l.b, m.r = m.r, l.b // for the cycle
	for _, k := range m.levels {
		for _, i := range k.places {
			k.x[i] = pixel{}
		}
	}
	cycle(m.levels)
	l.b, m.r = m.r, l.b
	l.x, m.z = m.z, l.x
	for _, i := range l.places {
		r, z := &m.r[i], &m.z[i]
		for c := range Channels {
			product[c] += r[c] * z[c]
			error = max(error, math.Abs(z[c]))
		}
	}
	return error, product
}

// ratio divides channel by channel; a channel whose error is 0 has nothing left to solve.
func ratio(a, b pixel) (q pixel) {
	for c := range Channels {
		if b[c] != 0 {
			q[c] = a[c] / b[c]
		}
	}
	return q
}

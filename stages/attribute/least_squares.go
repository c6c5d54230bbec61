package attribute

import (
	"math"
	"slices"
)

// normal are the normal equations of a weighted least-squares fit of responses y by units, z being 1 for one
// that is shown and 0 for one that isn't.
type normal struct {
	units  int
	gram   []float64 // Σ w·zᵢ·zⱼ, at i·units + j for j ≤ i
	moment []float64 // Σ w·zᵢ·y
	weight float64   // Σ w
	total  float64   // Σ w·y
}

func newNormal(units int) *normal {
	return &normal{units: units, gram: make([]float64, units*units), moment: make([]float64, units)}
}

// add adds a coalition, given the units that are shown in rising order.
func (n *normal) add(shown []int, w, y float64) {
	n.weight += w
	n.total += float64(w * y)
	for at, i := range shown {
		n.moment[i] += float64(w * y)
		row := n.gram[i*n.units : (i+1)*n.units]
		for _, j := range shown[:at+1] {
			row[j] += w
		}
	}
}

// at returns Σ w·zᵢ·zⱼ.
func (n *normal) at(i, j int) float64 { return n.gram[max(i, j)*n.units+min(i, j)] }

// constrained returns the coefficients of the fit without an intercept whose sum is given, nil if they aren't
// determined: the last is the sum minus the others.
func (n *normal) constrained(sum float64) []float64 {
	last := n.units - 1
	a, b := make([]float64, last*last), make([]float64, last)
	for i := range last {
		for j := range i + 1 {
			a[i*last+j] = n.at(i, j) - n.at(i, last) - n.at(last, j) + n.at(last, last)
		}
		b[i] = n.moment[i] - n.moment[last] - float64(sum*(n.at(i, last)-n.at(last, last)))
	}
	if !solve(a, b) {
		return nil
	}
	rest := sum
	for _, v := range b {
		rest -= v
	}
	return append(b, rest)
}

// ridge returns the coefficients of some units in a fit with an intercept, and the intercept: the smallest
// Σ w·(y − ŷ)² + penalty·Σ β². They are nil if they aren't determined.
func (n *normal) ridge(of []int, penalty float64) (coefficients []float64, intercept float64) {
	k := len(of)
	a, b := make([]float64, k*k), make([]float64, k)
	for i, u := range of {
		mean := n.at(u, u) / n.weight
		for j, v := range of[:i+1] {
			a[i*k+j] = n.at(u, v) - float64(mean*n.at(v, v))
		}
		a[i*k+i] += penalty
		b[i] = n.moment[u] - float64(mean*n.total)
	}
	if !solve(a, b) {
		return nil, 0
	}
	intercept = n.total
	for i, u := range of {
		intercept -= float64(b[i] * n.at(u, u))
	}
	return b, intercept / n.weight
}

// singular is the part of a variance that must be left when those of the variables before are known: less is
// what rounding leaves of none.
const singular = 1e-9

// solve sets b to the solution x of a·x = b, by Cholesky's factors of the symmetric matrix a, of which the
// lower triangle is given and overwritten. It returns false if a is singular.
func solve(a, b []float64) bool {
	n := len(b)
	for i := range n {
		row := a[i*n : (i+1)*n]
		before := row[i]
		for j := range i + 1 {
			other := a[j*n : (j+1)*n]
			sum := row[j]
			for k := range j {
				sum -= float64(row[k] * other[k])
			}
			switch {
			case j < i:
				row[j] = sum / other[j]
			case sum > singular*before: // no NaN
				row[i] = math.Sqrt(sum)
			default:
				return false
			}
		}
	}
	for i := range n {
		for k := range i {
			b[i] -= float64(a[i*n+k] * b[k])
		}
		b[i] /= a[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			b[i] -= float64(a[k*n+i] * b[k])
		}
		b[i] /= a[i*n+i]
	}
	return true
}

// forward returns units that are chosen one after the other, each by the best fit without a penalty.
func (n *normal) forward(count int) (chosen []int) {
	for range count {
		best, most := -1, math.Inf(-1)
		for u := range n.units {
			of := append(slices.Clone(chosen), u)
			if gain := n.explains(of); !slices.Contains(chosen, u) && gain > most {
				best, most = u, gain
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, best)
	}
	return chosen
}

// explains returns by how much a fit of some units lowers Σ w·(y − ŷ)², NaN if it isn't determined.
func (n *normal) explains(of []int) (gain float64) {
	b, _ := n.ridge(of, 0)
	if b == nil {
		return math.NaN()
	}
	for i, u := range of {
		gain += float64(b[i] * (n.moment[u] - float64(n.at(u, u)*n.total/n.weight)))
	}
	return gain
}

// A deviation compares the responses that a fit predicts with those that are.
type deviation struct{ w, y, predicted []float64 }

func (d *deviation) add(w, y, predicted float64) {
	d.w, d.y, d.predicted = append(d.w, w), append(d.y, y), append(d.predicted, predicted)
}

// explained returns the share of the responses' variance that the fit explains, NaN if they have none.
func (d *deviation) explained() float64 {
	if len(d.y) == 0 || slices.Max(d.y) == slices.Min(d.y) {
		return math.NaN()
	}
	sum, mean := 0.0, 0.0
	for k, w := range d.w {
		sum += w
		mean += float64(w * d.y[k])
	}
	mean /= sum
	left, variance := 0.0, 0.0
	for k, w := range d.w {
		left += float64(w * (d.y[k] - d.predicted[k]) * (d.y[k] - d.predicted[k]))
		variance += float64(w * (d.y[k] - mean) * (d.y[k] - mean))
	}
	return 1 - left/variance
}

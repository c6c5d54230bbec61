package stat

import "math"

// BradleyTerry returns the strengths θ, of sum 0, that make the comparisons most likely if p beats q with
// probability 1/(1+exp(θ_q−θ_p)) (Bradley & Terry 1952). wins is that of [Wins]; all methods must have been
// compared, directly or through others. Half a win is added on either side of every pair that was compared,
// so that a method that wins always has a finite strength.
func BradleyTerry(wins [][]float64) []float64 {
	m := len(wins)
	theta, part := make([]float64, m), make([]int, m)
	weights, gradient := matrix(m), make([]float64, m)
	won := func(p, q int) float64 {
		if wins[p][q]+wins[q][p] == 0 {
			return 0
		}
		return wins[p][q] + 0.5
	}
	likelihood := func(theta []float64) (sum float64) {
		for p := range m {
			for q := range m {
				sum -= won(p, q) * math.Log1p(math.Exp(theta[q]-theta[p]))
			}
		}
		return sum
	}
	// Newton's method on a strictly concave function; a hundred steps are many more than it needs.
	for range 100 {
		most := 0.0
		for p := range m {
			gradient[p] = 0
			for q := range m {
				n := won(p, q) + won(q, p)
				odds := 1 / (1 + math.Exp(theta[q]-theta[p]))
				gradient[p] += won(p, q) - n*odds
				if p != q {
					weights[p][q] = n * odds * (1 - odds)
				}
			}
			most = max(most, math.Abs(gradient[p]))
		}
		if most < 1e-11 {
			break
		}
		step := solveLaplacian(weights, part, gradient)
		from := likelihood(theta)
		next := make([]float64, m)
		for length := 1.0; length > 1e-9; length /= 2 {
			for p := range m {
				next[p] = theta[p] + length*step[p]
			}
			if likelihood(next) >= from {
				break
			}
		}
		copy(theta, next)
	}
	for p := range theta {
		theta[p] = math.Round(theta[p]*1e9)/1e9 + 0 // methods with equal results are equally strong
	}
	return theta
}

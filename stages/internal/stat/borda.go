package stat

// Borda returns the share of comparisons that each method wins. Where every case has every method, that is
// Borda's count of the methods ranked below, over the largest possible. wins is that of [Wins]. A method
// without comparisons has 0/0, NaN.
func Borda(wins [][]float64) []float64 {
	share := make([]float64, len(wins))
	for p := range wins {
		won, all := 0.0, 0.0
		for q := range wins {
			won += wins[p][q]
			all += wins[p][q] + wins[q][p]
		}
		share[p] = won / all
	}
	return share
}

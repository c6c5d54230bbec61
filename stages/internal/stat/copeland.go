package stat

// Copeland returns the share of rivals that each method beats in most cases; one that it beats as often as it
// loses counts 1/2. Rivals that it never met don't count. wins is that of [Wins].
func Copeland(wins [][]float64) []float64 {
	share := make([]float64, len(wins))
	for p := range wins {
		won, rivals := 0.0, 0.0
		for q := range wins {
			if wins[p][q]+wins[q][p] == 0 {
				continue
			}
			won += float64(one(wins[p][q] > wins[q][p])+one(wins[p][q] >= wins[q][p])) / 2
			rivals++
		}
		share[p] = won / rivals
	}
	return share
}

package metric

import "slices"

// The functions below take a map as the scores of a classifier that finds the object's pixels, those inside
// the mask. The mask must have pixels inside and outside.

// ROCAUC returns the area under the receiver operating characteristic: the share of the pairs of a pixel
// inside and one outside in which the one inside has the larger value, where equal values count ½.
func ROCAUC(values []float64, mask []uint8) float64 {
	area := MaskArea(mask)
	outside := len(mask) - area
	twice, above := 0.0, 0 // twice the number of pairs, and the pixels outside of larger value
	for _, g := range groups(values, mask) {
		twice += float64(g.inside) * float64(2*(outside-above)-g.outside())
		above += g.outside()
	}
	return twice / (2 * float64(area) * float64(outside))
}

// AveragePrecision returns the area under the steps of the precision-recall curve, Σ (R_k − R_{k−1})·P_k over
// the thresholds from the largest value to the smallest, where P_k and R_k are the precision and the recall
// of the pixels that reach threshold k. chance is its mean over maps of the same values in random order.
func AveragePrecision(values []float64, mask []uint8) (score, chance float64) {
	area, n := float64(MaskArea(mask)), float64(len(mask))
	hits, all := 0, 0
	for _, g := range groups(values, mask) {
		hits, all = hits+g.inside, all+g.size
		score += float64(g.inside) * float64(hits) / float64(all)
		// A pixel of the group is inside with a probability of area/n, and each of the others that reach the
		// threshold then with (area−1)/(n−1).
		others := float64(all-1) * (area - 1) / (n - 1)
		chance += float64(g.size) * (1 + others) / float64(all)
	}
	return score / area, chance / n
}

// A group is pixels of equal value.
type group struct{ size, inside int }

func (g group) outside() int { return g.size - g.inside }

// groups returns the groups from the largest value to the smallest.
func groups(values []float64, mask []uint8) (all []group) {
	order := Order(values)
	for k, i := range order {
		if k == 0 || values[i] != values[order[k-1]] {
			all = append(all, group{})
		}
		g := &all[len(all)-1]
		g.size++
		g.inside += inside(mask[i])
	}
	return all
}

// HeatRatio returns the effective heat ratio of Zhang et al., "Fine-Grained Neural Network Explanation by
// Identifying Input Features with Predictive Information", NeurIPS 2021: the area under the curve
// of the relevance inside the mask, of the pixels that reach a threshold, divided by the number of these
// pixels, or by their relevance if ofRelevance is set. The thresholds are as many equidistant quantiles, from
// 0 to 1, of the values that reach base; values are divided by the largest one first. chance is the mean over
// maps of the same values in random order.
func HeatRatio(values []float64, mask []uint8, base float64, thresholds int, ofRelevance bool) (score,
	chance float64) {
	largest := slices.Max(values)
	scaled, rising := make([]float64, len(values)), []float64{}
	for i, v := range values {
		if scaled[i] = v / largest; scaled[i] >= base {
			rising = append(rising, scaled[i])
		}
	}
	slices.Sort(rising)
	share := float64(MaskArea(mask)) / float64(len(mask))
	ratios, chances := make([]float64, thresholds), make([]float64, thresholds)
	for k := range ratios {
		// Divided last, the place of a value is a whole number: the value reaches itself. The authors' code
		// stays below the largest value.
		t := min(interpolated(rising, float64(k*(len(rising)-1))/float64(thresholds-1)), 0.99)
		within, total, count := 0.0, 0.0, 0
		for i, v := range scaled {
			if v < t {
				continue
			}
			total += v
			count++
			if inside(mask[i]) == 1 {
				within += v
			}
		}
		by := float64(count)
		if ofRelevance {
			by = total
		}
		ratios[k], chances[k] = within/by, share*total/by
	}
	return Area(ratios), Area(chances)
}

package model

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Evidence weighs hypotheses about the feeding of a model and the numbering of its classes by the
// log-likelihood of labels under the model's probabilities.
//
// Nets are rarely calibrated, and much less so if fed wrongly: each hypothesis gets the temperature that
// suits it best, at a price for temperatures far from 1, so that the order of answers counts, and their
// certainty hardly does. Images of a class are similar and give nearly the same evidence: n of them count
// as n/(1+(n−1)·alike), at most 1/alike (Kish's effective sample size).
type Evidence struct {
	Classes    int       // of the model
	Groups     []int     // the data set's class of each image, from 0
	Numberings [][]int64 // hypotheses of the model's class for each image

	fed []fed
}

// alike is the correlation of the evidence of two images of a class.
const alike = 0.25

// A fed holds the model's answers to the first images for one feed.
type fed struct {
	logits [][]float32
	broken bool    // an answer is NaN or +∞
	behind float64 // how much less evidence it had when measuring it ended; 0 before
}

// A Likelihood is how well a hypothesis explains labels.
type Likelihood struct {
	Log    float64 // weighted sum of the logarithms, at the best temperature, less its price
	Mean   float64 // of an image, weighted: comparable for different numbers of images
	Images int
	Right  int // images whose label has the largest answer
	// Gain is by how much Log exceeds chance: equal probabilities, or the same classes in random places.
	Gain float64

	byImage []float64
	price   float64 // of the temperature
}

// Add adds the answers to further images for a feed.
func (e *Evidence) Add(feed int, logits ...[]float32) {
	for len(e.fed) <= feed {
		e.fed = append(e.fed, fed{})
	}
	f := &e.fed[feed]
	for _, row := range logits {
		f.broken = f.broken || slices.ContainsFunc(row, func(v float32) bool {
			return v != v ||
				v > math.MaxFloat32
		})
	}
	f.logits = append(f.logits, logits...)
}

// weights returns the weights of the first n images.
func (e *Evidence) weights(n int) []float64 {
	count := map[int]float64{}
	for _, g := range e.Groups[:n] {
		count[g]++
	}
	w := make([]float64, n)
	for i, g := range e.Groups[:n] {
		w[i] = 1 / (1 + (count[g]-1)*alike)
	}
	return w
}

// inverseTemperatures are the tried ones.
var inverseTemperatures = func() (b []float64) {
	for k := -12; k <= 12; k++ {
		b = append(b, math.Exp2(float64(k)/2))
	}
	return b
}()

// price returns the price of an inverse temperature, in nats: half of the square of its logarithm to the
// base 4.
func price(b float64) float64 { return math.Pow(math.Log(b)/math.Log(4), 2) / 2 }

// likelihoods returns the likelihoods of all numberings on the first n images, for a feed, and that of the
// best other numbering.
func (e *Evidence) likelihoods(feed, n int) (all []Likelihood, other float64) {
	f, w := &e.fed[feed], e.weights(n)
	all = make([]Likelihood, len(e.Numberings))
	total := 0.0
	for _, v := range w {
		total += v
	}
	chance := -total * math.Log(float64(e.Classes))
	if f.broken {
		for q := range all {
			all[q] = Likelihood{Log: math.Inf(-1), Images: n}
		}
		return all, chance
	}
	for q := range all {
		all[q] = Likelihood{Log: math.Inf(-1), Images: n}
		for i, row := range f.logits[:n] {
			if int64(argmax(row)) == e.Numberings[q][i] {
				all[q].Right++
			}
		}
	}
	assigned := e.assigned(f, n)
	unplaced := math.Inf(-1)
	sharpest := make([]float64, len(all)) // the temperature of each numbering
	norm := make([]float64, n)
	for _, b := range inverseTemperatures {
		for i, row := range f.logits[:n] {
			norm[i] = logSumExp(row, b)
		}
		for q := range all {
			byImage := make([]float64, n)
			sum := -price(b)
			for i, row := range f.logits[:n] {
				byImage[i] = b*float64(row[e.Numberings[q][i]]) - norm[i]
				sum += w[i] * byImage[i]
			}
			if sum > all[q].Log {
				all[q].Log, all[q].byImage, all[q].price, sharpest[q] = sum, byImage, price(b), b
			}
		}
		sum := -price(b)
		for i, row := range f.logits[:n] {
			if assigned[i] < 0 {
				sum -= w[i] * math.Log(float64(e.Classes))
			} else {
				sum += w[i] * (b*float64(row[assigned[i]]) - norm[i])
			}
		}
		unplaced = max(unplaced, sum)
	}
	for q := range all {
		all[q].Mean = all[q].Log / total
	}
	other = max(chance, unplaced-e.logNumberings(n))
	for q := range all {
		if math.IsInf(all[q].Log, -1) { // a label has the probability 0
			all[q].Gain = all[q].Log
			continue
		}
		lucky := max(chance, e.permuted(f, n, w, e.Numberings[q], sharpest[q]))
		all[q].Gain = all[q].Log - lucky
		other = max(other, lucky)
	}
	return all, other
}

// assigned returns, for each image, the class with the largest answers for the other images of its group,
// -1 for the only image of a group.
func (e *Evidence) assigned(f *fed, n int) []int {
	sums := map[int][]float64{}
	count := map[int]int{}
	for i, row := range f.logits[:n] {
		g := e.Groups[i]
		if sums[g] == nil {
			sums[g] = make([]float64, e.Classes)
		}
		for k, v := range row {
			sums[g][k] += float64(v)
		}
		count[g]++
	}
	out := make([]int, n)
	for i, row := range f.logits[:n] {
		g := e.Groups[i]
		out[i] = -1
		if count[g] < 2 {
			continue
		}
		best := math.Inf(-1)
		for k, v := range sums[g] {
			if v -= float64(row[k]); v > best {
				best, out[i] = v, k
			}
		}
	}
	return out
}

// logNumberings returns the logarithm of the number of ways to number the groups of the first n images.
func (e *Evidence) logNumberings(n int) float64 {
	seen := map[int]bool{}
	sum := 0.0
	for _, g := range e.Groups[:n] {
		if !seen[g] {
			sum += math.Log(float64(max(1, e.Classes-len(seen))))
			seen[g] = true
		}
	}
	return sum
}

// permutations is the number of random numberings with which one is compared.
const permutations = 200

// permuted returns the logarithm of the mean likelihood of numberings that give the same classes to other
// groups: a model that knows the domain, but not these classes, attains it by chance.
func (e *Evidence) permuted(f *fed, n int, w []float64, labels []int64, b float64) float64 {
	at := map[int64]int{} // index of each class that occurs
	var classes []int64
	for _, l := range labels[:n] {
		if _, ok := at[l]; !ok {
			at[l] = len(classes)
			classes = append(classes, l)
		}
	}
	c := len(classes)
	if c < 2 {
		return math.Inf(-1)
	}
	table := make([]float64, c*c) // sums of the weighted logarithms, by true and assumed class
	for i, row := range f.logits[:n] {
		norm, from := logSumExp(row, b), at[labels[i]]*c
		for k, class := range classes {
			table[from+k] += w[i] * (b*float64(row[class]) - norm)
		}
	}
	draw := rand.New(rand.NewPCG(1, uint64(c)))
	total := math.Inf(-1)
	for range permutations {
		order := draw.Perm(c)
		if slices.IsSorted(order) {
			order[0], order[1] = order[1], order[0]
		}
		sum := 0.0
		for from, to := range order {
			sum += table[from*c+to]
		}
		total = logAdd(total, sum)
	}
	return total - math.Log(permutations) - price(b)
}

// lead returns by how much a's log-likelihood exceeds b's on their common images, no more than the scatter
// over images supports: a difference of z standard errors is evidence of z²/2. An impossible b is
// infinitely far behind.
func (e *Evidence) lead(a, b Likelihood) float64 {
	if math.IsInf(b.Log, -1) { // its feed is broken, or a label impossible
		return math.Inf(1)
	}
	n := min(len(a.byImage), len(b.byImage))
	w := e.weights(n)
	gap, total := 0.0, 0.0
	for i := range n {
		d := a.byImage[i] - b.byImage[i]
		gap += w[i] * d
		total += w[i]
	}
	variance := 0.0
	for i := range n {
		d := a.byImage[i] - b.byImage[i] - gap/total
		variance += w[i] * d * d / total
	}
	if variance > 0 {
		supported := gap * gap / (variance * total) / 2
		gap = math.Copysign(min(math.Abs(gap), supported), gap)
	}
	return gap + b.price - a.price
}

func argmax(row []float32) int {
	best := 0
	for k, v := range row {
		if v > row[best] {
			best = k
		}
	}
	return best
}

// logSumExp returns log Σ exp(b·v).
func logSumExp(row []float32, b float64) float64 {
	largest := float64(slices.Max(row)) * b
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v)*b - largest)
	}
	return largest + math.Log(sum)
}

func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

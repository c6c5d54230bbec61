package attribute

import (
	"math"

	"github.com/runexp/runexp/stages"
)

// A method whose maps have a sum that theory knows warns where they miss it, with the figure: what a rule
// takes for constant, such as a Round or a mask of a comparison, and what cancels, is told nowhere else.

// The shares of relevance that count as conserved. Biases and stabilisers take some in any net.
const leastConserved, mostConserved = 0.25, 4

// unconserved reports whether the share of the initial relevance that arrived is another, such as any of the
// other sign. An undefined share isn't reported.
func unconserved(share float64) bool { return share < leastConserved || share > mostConserved }

// warnUnconserved warns of item i if so much of its initial relevance arrived.
func warnUnconserved(e *stages.Env, i int, share float64) {
	if unconserved(share) {
		e.WarnItem(i, "relevance is not conserved: what arrives is %.2g times what it started with, where "+
			"0.25 to 4 is usual; biases and stabilisers may take it, and sums that nearly cancel blow it "+
			"up: attribute/lrp-conservation names the nodes", share)
	}
}

// mostMissing is the part of a difference of responses by which the sum of a map may miss it unremarked.
const mostMissing = 0.1

// incomplete reports whether a map's sum misses the difference of two responses that it explains by excess,
// more than a tenth of the difference and more than the rounding of the responses.
func incomplete(excess, response, reference float64) bool {
	rounding := 1e-4 * (math.Abs(response) + math.Abs(reference))
	return math.Abs(excess) > max(mostMissing*math.Abs(response-reference), rounding)
}

// warnIncomplete warns of item i if its map's sum misses the difference of two responses by excess. cause
// says what may be why.
func warnIncomplete(e *stages.Env, i int, excess, response, reference float64, cause string) {
	if incomplete(excess, response, reference) {
		e.WarnItem(i, "the map is not complete: its values sum to %.3g, and the difference that they "+
			"explain is %.3g; "+cause, excess+response-reference, response-reference)
	}
}

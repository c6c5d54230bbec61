// Package mutants checks that a defect of a metric is noticed: each of its mutants, a small change of one
// line, fails a named test. make mutants runs them; the suite checks that every mutant still applies.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// A mutant is a change of a file below stages that a test of a package there must notice.
type mutant struct {
	file, from, to string
	noticed        string // by this test: "score.TestABPC"
}

// mutants are of four kinds where a metric has them: a factor of 1.01, MoRF for LeRF, one step dropped, and a
// sum in the place of a mean.
var mutants = []mutant{
	// score/auc, score/rise and score/mas
	{"internal/metric/metric.go", "return (sum - (curve[0]+curve[n-1])/2) / float64(n-1)",
		"return 1.01 * (sum - (curve[0]+curve[n-1])/2) / float64(n-1)", "internal/metric.TestArea"},
	{"internal/metric/metric.go", "return (sum - (curve[0]+curve[n-1])/2) / float64(n-1)",
		"return sum - (curve[0]+curve[n-1])/2", "internal/metric.TestArea"},
	{"internal/metric/metric.go", "for _, y := range curve {", "for _, y := range curve[1:] {",
		"internal/metric.TestArea"},
	{"internal/metric/removal.go", "return sum / (places[len(places)-1] - places[0])",
		"return 1.01 * sum / (places[len(places)-1] - places[0])", "score.TestAUCOverShares"},
	{"internal/metric/removal.go", "for k := 1; k < len(curve); k++ {", "for k := 2; k < len(curve); k++ {",
		"score.TestAUCOverShares"},
	{"score/rise.go", "stages.Scalar(insertion-deletion)", "stages.Scalar(deletion-insertion)",
		"score.TestRISE"},
	{"score/rise.go", "stages.Scalar(insertion-deletion)", "stages.Scalar(insertion+deletion)",
		"score.TestRISE"},
	{"internal/metric/mas.go", "penalty[k] = math.Abs(dr[k] - mr[k])",
		"penalty[k] = 1.01 * math.Abs(dr[k]-mr[k])", "internal/metric.TestGoldenCurves"},
	{"internal/metric/mas.go", "share := sum / total", "share := 1.01 * sum / total",
		"internal/metric.TestDensityResponse"},
	{"internal/metric/mas.go", "for k := 0; k < len(order); k += step {",
		"for k := step; k < len(order); k += step {", "internal/metric.TestDensityResponse"},
	{"internal/metric/mas.go", "v := (y - base) / (original - base)", "v := y - base",
		"internal/metric.TestMonotone"},

	// attribute/expected-gradients, idgi, idg and blur-ig
	{"attribute/expected_gradients.go", "difference[i] = to[i] - v", "difference[i] = to[i] - 0.9*v",
		"attribute.TestPathsOfALinearNet"},
	{"attribute/expected_gradients.go", "weights[i] = 1 / float64(len(draws))",
		"weights[i] = 1.01 / float64(len(draws))", "attribute.TestPathsOfALinearNet"},
	{"attribute/expected_gradients.go", "if k%images == 0 {", "if k == 0 {", "attribute.TestStratified"},
	{"attribute/idgi.go", "float64(square * (change / s.total))", "1.01 * float64(square*(change/s.total))",
		"attribute.TestPathsOfALinearNet"},
	{"attribute/idg.go", "from = 0\n", "\n", "attribute.TestSamples"},
	{"attribute/idg.go", "if count > 0 {", "if true {", "attribute.TestSamples"},
	{"attribute/blur_ig.go", "weights[row] = sigma - sigmas[at]", "weights[row] = sigmas[at] - sigma",
		"attribute.TestPathsOfALinearNet"},
	{"attribute/blur_ig.go", "slope[k] = w * (float64(k*k) - mean)", "slope[k] = w * float64(k*k)",
		"attribute.TestGaussian"},

	// the curves of perturb/
	{"replacement.go", "for k := range r.Steps + 1 {", "for k := range r.Steps {", "perturb.TestPoints"},
	{"perturb/order.go", `case "lerf":`, `case "morf":`, "perturb.TestOfficialAblation"},

	// attribute/partition-shap, kernel-shap, lime, feature-ablation, shapley-sampling
	{"attribute/owen.go", "share := n.effect() / float64(n.size())",
		"share := 1.01 * n.effect() / float64(n.size())", "attribute.TestOwenAdditive"},
	{"attribute/owen.go", "trailing.top = b.bottom - rows/2", "trailing.top = b.top + rows/2",
		"attribute.TestOfficialPartitionGames"},
	{"attribute/owen.go", "n.urgency = math.Abs(n.with-n.without) * n.weight",
		"n.urgency = math.Abs(n.with - n.without)", "attribute.TestOfficialPartitionGames"},
	{"attribute/owen.go", "len(opened) < o.atOnce &&", "len(opened) < o.atOnce+1 &&",
		"attribute.TestOwenAtOnce"},
	{"attribute/partition_shap.go", `if p.Leaves == "values" {`, `if p.Leaves == "pixels" {`,
		"attribute.TestPartitionSHAPLeaves"},
	{"attribute/walk.go", "float64(t*(", "float64(0.9*t*(", "attribute.TestPathsOfALinearNet"},
	{"attribute/hidden.go", "i = 2*(n-1) - i", "i = 2*n - 1 - i", "attribute.TestBoxBlur"},
	{"attribute/hidden.go", "float32(sum / area)", "float32(1.01 * sum / area)", "attribute.TestBoxBlur"},
	{"attribute/least_squares.go", "float64(sum*(n.at(i, last)-n.at(last, last)))",
		"float64(1.01*sum*(n.at(i, last)-n.at(last, last)))", "attribute.TestKernelSHAPExact"},
	{"attribute/least_squares.go", "a[i*k+i] += penalty", "a[i*k+i] += 1.01 * penalty",
		"attribute.TestOfficialLIME"},
	{"attribute/kernel_shap.go", "n.add(shown, 1, y-g.hidden)", "n.add(shown, 1, y)",
		"attribute.TestOfficialKernelSHAP"},
	{"attribute/lime.go", "/ (2 * p.Width * p.Width))", "/ (p.Width * p.Width))",
		"attribute.TestLIMEWeights"},
	{"attribute/lime.go", "n.add(all, 1, g.image)", "n.add(all, 0, g.image)", "attribute.TestOfficialLIME"},
	{"attribute/lime.go", "math.Abs(coefficients[b]), math.Abs(coefficients[a])",
		"math.Abs(coefficients[a]), math.Abs(coefficients[b])", "attribute.TestOfficialLIME"},
	{"attribute/feature_ablation.go", "values[k] = g.image - y", "values[k] = y - g.image",
		"attribute.TestOfficialFeatureAblation"},
	{"attribute/shapley_sampling.go", "values[k] /= float64(orders)",
		"values[k] /= 1.01 * float64(orders)", "attribute.TestShapleySamplingExact"},
	{"attribute/subsets.go", "values[k] /= n", "values[k] *= n", "attribute.TestSolverMap"},

	// perturb/subset, and the scores of replaced subsets
	{"internal/metric/subsets.go", "sum += values[8*k+first]", "sum += 1.01 * values[8*k+first]",
		"internal/metric.TestSubsets"},
	{"internal/metric/subsets.go", "dst[k] = ^b", "dst[k] = b", "internal/metric.TestSubsets"},
	{"internal/stat/stat.go", "xx, xy, yy = xx+float64(a*a), xy+float64(a*b), yy+float64(b*b)",
		"xx, xy, yy = xx+math.Abs(a), xy+float64(a*b), yy+float64(b*b)", "score.TestSubsetScores"},
	{"internal/stat/stat.go", "|| constant(x) || constant(y) {", "{", "score.TestSubsetLaws"},
	{"perturb/subset.go", "clear(mask)", "clear(mask[1:])", "perturb.TestSubsetReplaces"},
	{"internal/metric/subsets.go", "float32(1 - row[", "float32(row[", "perturb.TestSubsetReplaces"},
	{"perturb/subset_draw.go", "1/(float64(k)*float64(units-k))", "1/float64(k)",
		"perturb.TestSubsetFrequencies"},
	{"perturb/subset_draw.go", "d.Float64() < p {", "d.Float64() < 1.1*p {",
		"perturb.TestSubsetFrequencies"},
	{"perturb/substrate.go", "dst[c*n+k] = float32(mean[unit])", "dst[c*n+k] = float32(1.01 * mean[unit])",
		"perturb.TestSegmentMean"},
	{"score/subsets.go", "return s.image - response", "return response - s.image", "score.TestSubsetScores"},
	{"score/subsets.go", "i += s.repeats {", "i++ {", "score.TestPeersSubsets"},
	{"score/faithfulness_correlation.go", "}, stat.Pearson,", "}, stat.Spearman,", "score.TestSubsetScores"},
	{"score/faithfulness_estimate.go", "}, stat.Pearson,", "}, stat.Spearman,", "score.TestPeersSubsets"},
	{"score/mu_fidelity.go", "}, stat.Spearman,", "}, stat.Pearson,", "score.TestSubsetScores"},
	{"score/single_deletion.go", "}, stat.Spearman,", "}, stat.Pearson,", "score.TestSubsetScores"},
	{"score/monotonicity_correlation.go", "return change * change / of", "return change / of",
		"score.TestPeersSubsets"},
	{"score/non_sensitivity.go", "share = count / float64(len(drops))", "share = count",
		"score.TestNonSensitivity"},
	{"score/non_sensitivity.go", "< p.Epsilon) != (", "< p.Epsilon) == (", "score.TestPeersSubsets"},
	{"score/sensitivity_n.go", "metric.Average(curve)", "curve[0]", "score.TestSensitivityN"},
	{"score/infidelity.go", "return raw / float64(s.Count)", "return 1.01 * raw / float64(s.Count)",
		"score.TestPeersSubsets"},
	{"score/infidelity.go", "scale = products / squares", "scale = squares / products",
		"score.TestPeersSubsets"},
	{"score/infidelity.go", "values[k] *= v", "values[k] *= 1.01 * v", "score.TestInfidelityOfGradients"},

	// stats/irr, stats/icr, stats/sensitivity, stats/mean-curve
	{"internal/stat/equal.go", "<= resolution {", "< 0*resolution {", "internal/stat.TestTied"},
	{"internal/stat/equal.go", "max(2*middle*sameShare, largest*sameBits)", "2*middle*sameShare",
		"internal/stat.TestResolution"},
	{"internal/stat/krippendorff.go", "return 1 - observed/expected", "return 1 - 1.01*observed/expected",
		"internal/stat.TestGoldenKrippendorff"},
	{"internal/stat/krippendorff.go", "float64(len(u)-own)", "float64(len(u))",
		"internal/stat.TestKrippendorffReference"},
	{"internal/stat/krippendorff.go", "return n*n - same", "return n*n - 1.01*same",
		"internal/stat.TestKrippendorffReference"},
	{"internal/stat/krippendorff.go", "ranks := Ranks(all)", "ranks := all",
		"internal/stat.TestKrippendorffReference"},
	{"internal/stat/icr.go", "return sum / (n * n)", "return sum / n", "internal/stat.TestGoldenConsistency"},
	{"internal/stat/icr.go", "if higher {", "if !higher {", "internal/stat.TestOrder"},
	{"stats/icr.go", "if variant == official {", "if variant != official {", "stats.TestBothVariants"},
	{"stats/irr.go", "case variant == official:", "case variant != official:", "stats.TestNumbered"},
	{"stats/irr.go", "if r.lower[g] {", "if false {", "stats.TestICR"},
	{"stats/sensitivity.go", "area = 1 - area", "area = 1.01 - area", "stats.TestOfficialSensitivity"},
	{"stats/sensitivity.go", "number++", "number--", "stats.TestOfficialSensitivity"},
	{"stats/sensitivity.go", "sum[k] = (sum[k] - low) / (high - low)", "sum[k] = (sum[k] - low) / high",
		"stats.TestOfficialSensitivity"},
	{"stats/sensitivity.go", "if defined[id] < len(cells) {", "if false {", "stats.TestSensitivity"},
	{"stats/mean_curve.go", "mean[k] /= float64(cells)", "mean[k] /= 1", "stats.TestMeanCurve"},
	{"score/mas.go", "difference[k] = insertion[k] - deletion[k]",
		"difference[k] = insertion[k] + deletion[k]", "score.TestMASCurvesAreThose"},

	// score/aopc, score/abpc, score/road, score/delta
	{"internal/metric/removal.go", "sum += curve[0] - y", "sum += 1.01 * (curve[0] - y)", "score.TestAOPC"},
	{"internal/metric/removal.go", "return sum / float64(len(curve))", "return sum", "score.TestAOPC"},
	{"internal/metric/removal.go", "return sum / float64(len(curve))", "return sum / float64(len(curve)-1)",
		"score.TestAOPC"},
	{"internal/metric/removal.go", "sum += y - lower[k]", "sum += 1.01 * (y - lower[k])", "score.TestABPC"},
	{"internal/metric/removal.go", "return sum / float64(len(upper))", "return sum", "score.TestABPC"},
	{"score/abpc.go", "metric.MeanDistance(lerf, morf)", "metric.MeanDistance(morf, lerf)", "score.TestABPC"},
	{"score/road.go", "stages.Scalar((lerf-morf)/2)", "stages.Scalar((morf-lerf)/2)", "score.TestROAD"},
	{"score/road.go", "shares[from] == 0 {", "shares[from] <= 0.1 {", "score.TestROAD"},
	{"internal/metric/removal.go", "return sum / float64(len(values))", "return sum", "score.TestROAD"},
	{"score/delta.go", "stages.Scalar(curve[0]-curve[k])", "stages.Scalar(1.01*(curve[0]-curve[k]))",
		"score.TestDelta"},
	{"score/delta.go", "stages.Scalar(curve[0]-curve[k])", "stages.Scalar(curve[0]-curve[k-1])",
		"score.TestDelta"},

	// segments/, score/irof
	{"internal/superpixel/slic.go", "1 / (step * step)", "1.01 / (step * step)",
		"internal/superpixel.TestEqualsScikitImage"},
	{"internal/superpixel/connected.go", "adjacent = out[j]", "adjacent = max(adjacent, out[j])",
		"internal/superpixel.TestEqualsScikitImage"},
	{"internal/superpixel/felzenszwalb.go", "inner[a] + scale/float64(f.size[a])", "inner[a] + scale",
		"internal/superpixel.TestEqualsScikitImage"},
	{"internal/superpixel/quickshift.go", "math.Ceil(3 * p.Kernel)", "math.Ceil(2 * p.Kernel)",
		"internal/superpixel.TestEqualsScikitImage"},
	{"segments/grid.go", "k * cells / size", "k / cells", "segments.TestGrid"},
	{"segments/mask.go", "t.Shape[0], t.Shape[1])", "t.Shape[1], t.Shape[0])", "segments.TestMask"},
	{"segments/slic.go", "Smallest: p.MinSizeFactor", "Smallest: p.MaxSizeFactor", "segments.TestDefaults"},
	{"segments/felzenszwalb.go", "Smallest: p.MinSize}", "Smallest: p.MinSize + 1}",
		"segments.TestDefaults"},
	{"segments/quickshift.go", "Distance: p.MaxDist", "Distance: p.MaxDist / 2", "segments.TestQuickshift"},
	{"segments/external.go", "if v < 0 ||", "if v < -1 ||", "segments.TestExternal"},
	{"segments/segments.go", `"model", wired("model"))`, `"model", s.Of == "input")`,
		"segments.TestImagesThatCannotBeSegmented"},
	{"internal/itemfile/itemfile.go", "case ok:", "case ok && false:", "segments.TestExternal"},
	{"internal/superpixel/seeds.go", "comb{int(math.Floor(s / 2)),", "comb{int(math.Ceil(s / 2)),",
		"internal/superpixel.TestCombs"},
	{"internal/superpixel/lab.go", "c[2] = 200 *", "c[2] = 500 *",
		"internal/superpixel.TestEqualsScikitImage"},
	{"internal/superpixel/smooth.go", "line[min(k, 2*n-1-k)]", "line[min(k, n-1)]",
		"internal/superpixel.TestEqualsScikitImage"},
	{"attribute/xrai_regions.go", "len(r) >= p.MinPixels", "len(r) > p.MinPixels",
		"attribute.TestXRAIByHand"},
	{"attribute/xrai_regions.go", "means[k] > means[best]", "means[k] >= means[best]",
		"attribute.TestXRAIByHand"},
	{"attribute/xrai_regions.go", "dy*dy+dx*dx <= radius*radius", "dy*dy+dx*dx < radius*radius",
		"attribute.TestRegionsOfPAIR"},
	{"attribute/xrai.go", "sum[k] += v / 2", "sum[k] += v", "attribute.TestXRAIIsOfIntegratedGradients"},
	{"internal/superpixel/zoom.go", "gaussian((step-1)/2)", "gaussian(step/2)",
		"attribute.TestRegionsOfPAIR"},
	{"score/irof.go", "metric.MeanDrop(curve) / curve[0]", "metric.MeanDrop(curve)", "score.TestIROF"},
	{"score/irof.go", "!(curve[0] > 0)", "curve[0] == 0", "score.TestIROF"},

	// perturb/pic, score/pic, score/pic-curve
	{"internal/metric/pic.go", "min(max((v-low)/(high-low), 0), 1)",
		"min(max(1.01*(v-low)/(high-low), 0), 1)", "score.TestPIC"},
	{"internal/metric/pic.go", "if responses[k] > most {", "if k > 0 && responses[k] > most {",
		"score.TestInformationCurve"},
	{"internal/metric/pic.go", "for points[k+1].x <= x {", "for points[k+1].x < x {",
		"score.TestOfficialInformationCurve"},
	{"internal/metric/pic.go", "points = append(points, point{0, 0}, point{1, 1})",
		"points = append([]point{{0, 0}, {1, 1}}, points...)", "score.TestOfficialInformationCurve"},
	{"internal/metric/pic.go", "return (sorted[n/2-1] + sorted[n/2]) / 2", "return sorted[n/2]",
		"score.TestOfficialPIC"},
	{"score/pic.go", "if k == 0 || p.Variant == paper {", "if k == 0 || p.Variant == official {",
		"score.TestPIC"},
	{"score/pic.go", "metric.Normalised(lengths[1:last], lengths[0], lengths[last])",
		"metric.Normalised(lengths[1:last], lengths[1], lengths[last])", "score.TestOfficialPAIR"},
	{"perturb/pic.go", "return n - int(math.Ceil(float64(n-1)*(1-share)))",
		"return n - int(math.Floor(float64(n-1)*(1-share)))", "perturb.TestAtLeastQuantile"},
	{"perturb/pic.go", "curve = slices.Concat(ends[:1], curve, ends[1:])",
		"curve = slices.Concat(ends[1:], curve, ends[:1])", "perturb.TestPICLaws"},
	{"perturb/partial_image.go", "uint8(math.RoundToEven(sum / total))", "uint8(sum / total)",
		"perturb.TestOfficialPAIR"},
	{"perturb/partial_image.go", "out[c+pixel] = value(sum, float64(total))",
		"out[c+pixel] = value(1.01*sum, float64(total))", "perturb.TestOfficialPIC"},
	{"internal/delaunay/delaunay.go", "return det > 0", "return det < 0", "internal/delaunay.TestDelaunay"},
	{"internal/delaunay/delaunay.go", "return s.turn(a, c, d) > 0", "return s.turn(a, c, d) < 0",
		"internal/delaunay.TestTies"},

	// score/average-drop, score/adcc, score/arcc, perturb/soft-mask
	{"internal/metric/masked.go", "return math.Max(0, p-q) / p", "return math.Max(0, p-q)",
		"score.TestAverageDrop"},
	{"internal/metric/masked.go", "return math.Max(0, q-p) / (1 - p)", "return math.Max(0, q-p) / p",
		"score.TestAverageDrop"},
	{"internal/metric/masked.go", "case q > p:", "case q >= p:", "score.TestAverageDrop"},
	{"internal/metric/masked.go", "return float64(len(values)) / sum",
		"return 1.01 * float64(len(values)) / sum", "score.TestADCC"},
	{"score/adcc.go", "coherency = (stat.Pearson(m, again) + 1) / 2", "coherency = stat.Pearson(m, again)",
		"score.TestADCC"},
	{"score/adcc.go", "metric.Harmonic(coherency, 1-complexity, 1-drop)",
		"metric.Harmonic(coherency, complexity, 1-drop)", "score.TestADCC"},
	{"score/adcc_means.go", "1-sums[1]/n, 1-sums[2]/n", "1-sums[1], 1-sums[2]/n", "score.TestADCC"},
	{"score/arcc.go", "gap := min(max(lerf-morf, 0), 1)", "gap := min(max(morf-lerf, 0), 1)",
		"score.TestARCC"},
	{"score/arcc.go", "gap := min(max(lerf-morf, 0), 1)", "gap := min(max(lerf-morf, 0), 1) / 2",
		"score.TestOfficialMaskedInput"},
	{"perturb/soft_mask.go", "share := m[k%pixels]", "share := 1 - m[k%pixels]", "perturb.TestSoftMask"},
	{"internal/metric/masked.go", "q = math.Max(0, q)", "q = math.Max(-1, q)", "score.TestAverageDrop"},
	{"score/average_drop.go", "return curve[0], curve[1], nil", "return curve[1], curve[0], nil",
		"score.TestAverageDrop"},
	{"perturb/response.go", "values[k], values[n+k], values[2*n+k] = r.probability, r.logit, r.correct",
		"values[k], values[n+k], values[2*n+k] = r.logit, r.probability, r.correct", "perturb.TestResponse"},
	{"perturb/response.go", "r.correct = n.First(r.target.Class) + int(label)", "_ = label",
		"perturb.TestResponse"},

	// score/completeness, score/input-invariance, score/relative-stability, score/continuity, score/emprt
	{"score/completeness.go", "return math.Abs(sum-difference) / math.Abs(difference), nil",
		"return math.Abs(sum - difference), nil", "score.TestCompleteness"},
	{"score/completeness.go", "dst[k] = n.Black(k / (n.Height * n.Width))", "dst[k] = 0",
		"score.TestCompleteness"},
	{"score/input_invariance.go", "return euclidean(a, b) / euclidean(a, nil), invariant, nil",
		"return euclidean(a, b), invariant, nil", "score.TestInputInvarianceByHand"},
	{"score/input_invariance.go", "if farthest <= p.Within*most {", "if farthest <= p.Within {",
		"score.TestInputInvarianceByHand"},
	{"internal/variant/shift.go", "by[c] = float32(p.By * s.Scale / s.Std[c])",
		"by[c] = float32(1.01 * p.By * s.Scale / s.Std[c])", "score.TestInputInvariance"},
	{"score/relative_stability.go", "change/math.Max(by[k], p.Epsilon)",
		"change/math.Max(by[0], p.Epsilon)", "score.TestRelativeStability"},
	{"score/relative_stability.go", "d := (v - b[k]) / by", "d := 1.01 * (v - b[k]) / by",
		"score.TestRelativeStability"},
	{"score/relative_stability.go", "by := v", "by := 1.0", "score.TestRelativeStability"},
	{"score/relative_stability.go", "by[len(stabilities)] == 0 {", "by[len(stabilities)] == 1 {",
		"score.TestRelativeStability"},
	{"model/predict.go", "by := float64(v)", "by := 1.0", "model.TestChange"},
	{"model/predict.go", "out[c] = n.Logit(", "out[c] = n.Probability(", "model.TestChangeOfOutputs"},
	{"model/predict.go", "p.relative(a.layer, b.layer), same", "p.relative(b.layer, a.layer), same",
		"model.TestChangeOfOutputs"},
	{"model/predict.go", "distance(logits(a), logits(b))", "1.01 * distance(logits(a), logits(b))",
		"model.TestChangeOfOutputs"},
	{"model/predict.go", "== program.Predicted(b.outputs)", "== program.Predicted(a.outputs)",
		"model.TestChangeOfOutputs"},
	{"model/predict.go", "if class >= t.Class-first {", "if class > t.Class-first {",
		"model.TestRandomClass"},
	{"perturb/shift.go", "v /= 255", "v /= 256", "perturb.TestShift"},
	{"perturb/shift.go", "float32(v + by)", "float32(v - by)", "score.TestInputInvariance"},
	{"score/continuity.go", "sum += math.Abs(v - b[k])", "sum += 1.01 * math.Abs(v-b[k])",
		"score.TestContinuity"},
	{"perturb/translate.go", "k/width%height-p.Y, k%width-p.X", "k/width%height-p.Y, k%width+p.X",
		"score.TestOfficialStability"},
	{"perturb/translate.go", "k/width%height-p.Y, k%width-p.X", "k/width%height+p.Y, k%width-p.X",
		"perturb.TestTranslate"},
	{"perturb/translate.go", "x >= 0 && x < width {", "x > -width && x < width {", "perturb.TestTranslate"},
	{"score/emprt.go", "metric.HistogramEntropy(random, p.Bins) - before) / before",
		"metric.HistogramEntropy(random, p.Bins) - before)", "score.TestEMPRT"},
	{"maps/mean.go", "out[k] = float32(v / float64(n))", "out[k] = float32(v)", "maps.TestMean"},

	// maps/offset, maps/noise, score/external
	{"maps/offset.go", "f.values[i] += offset", "f.values[i] += 1.01 * offset",
		"maps.TestOfficialVariations"},
	{"maps/noise.go", "f.values[i] += float64(width * draw())",
		"f.values[i] += float64(1.01 * width * draw())", "maps.TestOfficialVariations"},
	{"score/external.go", "if row[i] != text {", "if row[i] == text {", "score.TestExternal"},

	// fuse/meta-rank and fuse/rankings
	{"internal/stat/metarank.go", "h[q] += one(x > values[b]) + one(x >= values[b])",
		"h[q] += 2 * one(x > values[b])", "internal/stat.TestFuseTies"},
	{"internal/stat/metarank.go", "kappa[p] += n * f.Logit[p][q]", "kappa[p] += f.Logit[p][q]",
		"internal/stat.TestFuseIsLeastSquares"},
	{"internal/stat/metarank.go", "kappa[p] /= float64(m)", "kappa[p] /= float64(m - 1)",
		"internal/stat.TestGoldenMetaRank"},
	{"internal/stat/metarank.go", "return (lost + 1) / (n + 2)", "return (lost + 0.5) / (n + 1)",
		"internal/stat.TestSmoothing"},
	{"internal/stat/metarank.go", "drawn[c] = quality[r.IntN(len(quality))]", "drawn[c] = quality[c]",
		"internal/stat.TestFuseIntervals"},
	{"internal/stat/kemeny.go", "sum += wins[p][bits.TrailingZeros(uint(s))]",
		"sum += wins[bits.TrailingZeros(uint(s))][p]", "internal/stat.TestKemenyIsOptimal"},
	{"internal/stat/bradleyterry.go", "gradient[p] += won(p, q) - n*odds",
		"gradient[p] += wins[p][q] - n*odds", "internal/stat.TestBradleyTerry"},
	{"internal/scores/means.go", "c.Undefined[p] < c.Scores[p] {", "c.Scores[p] > 0 {",
		"fuse.TestMetaRankMissing"},

	// stats/consistency
	{"stats/consistency.go", "case p.rho > 0.8:", "case p.rho >= 0.8:", "stats.TestConsistency"},
	{"internal/scores/contest.go", "out[p] = -out[p]", "out[p] = +out[p]",
		"stats.TestConsistency"},

	// without passes: score/compactness, score/mst-c, score/monotonicity, and those of detecting the object
	{"internal/metric/compactness.go", "return weighted / (n * total)",
		"return 1.01 * weighted / (n * total)",
		"internal/metric.TestCompactnessByHand"},
	{"internal/metric/compactness.go", "(2*float64(i+1) - n - 1) * v)", "(2*float64(i) - n - 1) * v)",
		"internal/metric.TestGoldenCompactness"},
	{"internal/metric/compactness.go", "entropy -= float64(p * math.Log(p))",
		"entropy -= float64(p * math.Log2(p))", "internal/metric.TestCompactnessByHand"},
	{"internal/metric/compactness.go", "case k < bins-1 && v >= edge(k+1):",
		"case k < bins-1 && v > edge(k+1)+1:", "internal/metric.TestCompactnessByHand"},
	{"internal/metric/compactness.go", "case v < edge(k):", "case v < low:",
		"internal/metric.TestCompactnessByHand"},
	{"internal/metric/compactness.go", "if v > least {", "if v >= least {",
		"internal/metric.TestCompactnessByHand"},
	{"score/compactness.go", "metric.Values(t, metric.Signed)", "metric.Values(t, p.Values)",
		"score.TestCompactness"},
	{"score/compactness.go", "share := entropy / math.Log(n)", "share := entropy / math.Log2(n)",
		"score.TestCompactness"},
	{"internal/metric/mst_c.go", "spread = math.Sqrt(float64(twice) / 2)",
		"spread = math.Sqrt(float64(twice))",
		"internal/metric.TestMSTCByHand"},
	{"internal/metric/mst_c.go", "if found >= k && o.square > last {", "if found >= k && o.square >= last {",
		"internal/metric.TestMSTCLaws"},
	{"internal/metric/mst_c.go", "if v >= cut {", "if v > cut {", "internal/metric.TestMSTCByHand"},
	{"score/mst_c.go", "m.Points > distinct {", "m.Points < distinct {", "score.TestMSTC"},
	{"internal/metric/ranking.go", "float64(2*(outside-above)-g.outside())", "float64(2*(outside-above))",
		"internal/metric.TestRankingByHand"},
	{"internal/metric/ranking.go", "others := float64(all-1) * (area - 1) / (n - 1)",
		"others := float64(all-1) * area / n", "score.TestLocalisationByHand"},
	{"internal/metric/ranking.go", "score += float64(g.inside) * float64(hits) / float64(all)",
		"score += float64(g.inside) * float64(hits-g.inside) / float64(all)",
		"internal/metric.TestGoldenRanking"},
	{"internal/metric/ranking.go", "if v < t {", "if v <= t {", "internal/metric.TestGoldenRanking"},
	{"internal/metric/ranking.go", "scaled[i] >= base {", "scaled[i] > base {",
		"internal/metric.TestRankingByHand"},
	{"internal/metric/ranking.go", "/float64(thresholds-1)), 0.99)", "/float64(thresholds-1)), 1)",
		"internal/metric.TestRankingByHand"},
	{"score/effective_heat_ratio.go", `p.By == "relevance"`, `p.By == "pixels"`,
		"score.TestLocalisationByHand"},
	{"score/average_precision.go", "if !metric.Relevance(v) {", "if false {",
		"score.TestLocalisationUndefined"},
	{"score/roc_auc.go", "return metric.ROCAUC(v, mask), 0.5", "return metric.ROCAUC(v, mask), share(mask)",
		"score.TestLocalisationByHand"},
	{"score/roc_auc.go", "if !metric.Relevance(v) {", "if false {", "score.TestLocalisationUndefined"},
	{"score/top_k.go", "return []float64{x, chance, x / chance}", "return []float64{x, chance, x * chance}",
		"score.TestTimesChance"},
	{"score/weighted_localisation.go", "metric.MassAccuracy(v, mask) / share(mask)",
		"metric.MassAccuracy(v, mask) * share(mask)", "score.TestTimesChance"},
	{"score/monotonicity.go", "if curve[k] >= curve[k+1] {", "if curve[k] <= curve[k+1] {",
		"score.TestMonotonicity"},
	{"score/monotonicity.go", "curve = curve[:len(curve)-1]", "curve = curve[1:]",
		"score.TestMonotonicity"},

	// score/sufficiency and score/consistency
	{"score/population.go", "if p.classes[i] == p.classes[k] {", "if p.classes[i] != p.classes[k] {",
		"score.TestPopulationByHand"},
	{"score/population.go", "float64(t.agree[i]) / float64(t.alike[i])",
		"1.01 * float64(t.agree[i]) / float64(t.alike[i])", "score.TestGoldenPopulation"},
	{"score/sufficiency.go", "square[k] = (n - 1) / s", "square[k] = 1", "score.TestGoldenPopulation"},
	{"score/sufficiency.go", "for b := a; b < len(p.items); b += block {",
		"for b := a; b < min(a+1, len(p.items)); b += block {", "score.TestPairs"},
	{"score/consistency.go", "math.RoundToEven(x*100)", "math.Floor(x*100)", "score.TestRoundedLabel"},

	// on masks and boxes
	{"internal/metric/mass.go", "return within / total", "return 1.01 * within / total",
		"internal/metric.TestMassAccuracy"},
	{"internal/metric/mass.go", "return within / total", "return within", "internal/metric.TestMassAccuracy"},
	{"internal/metric/localisation.go", "TopOf(values, mask, area).Hits() / float64(area)",
		"1.01 * TopOf(values, mask, area).Hits() / float64(area)", "score.TestLocalisationByHand"},
	{"internal/metric/localisation.go", "TopOf(values, mask, area).Hits() / float64(area)",
		"TopOf(values, mask, area).Hits()", "score.TestLocalisationByHand"},
	{"internal/metric/localisation.go", "case v > last:", "case v < last:", "score.TestLocalisationByHand"},
	{"internal/metric/localisation.go", "return TopOf(values, mask, 1).Hits()",
		"return 1.01 * TopOf(values, mask, 1).Hits()", "score.TestLocalisationByHand"},
	{"internal/metric/localisation.go", "return float64(hits) / float64(size+area-hits)",
		"return float64(hits) / float64(size+area)", "score.TestLocalisationByHand"},

	// perturb/gradient-masking, mosaic/gae and score/gae
	{"perturb/gradient_masking.go", "newMasking(image, target, true)", "newMasking(image, target, false)",
		"perturb.TestOfficialGradientMasking"},
	{"perturb/gradient_masking.go", "for step := range len(counts) + 1 {", "for step := range len(counts) {",
		"perturb.TestOfficialGradientMasking"},
	{"perturb/gradient_masking.go", "m.impact[k] += impact[k] / scale", "m.impact[k] += impact[k] + 0*scale",
		"perturb.TestOfficialGradientMasking"},
	{"perturb/gradient_masking.go", "rows[k+1], p.Variant != paperMasking)", "rows[k+1], true)",
		"perturb.TestGradientMaskingOfLinearNet"},
	{"perturb/gradient_masking.go", "float32(l-m), float32(m), float32(l)",
		"float32(l-m), float32(l), float32(m)", "perturb.TestOfficialGradientMasking"},
	{"perturb/gradient_masking.go", "float64(k)/float64(p.Steps+1)", "float64(k)/float64(p.Steps)",
		"perturb.TestGradientMaskingOfLinearNet"},
	{"perturb/gradient_masking.go", "counts[k] = (k+1)*n/(p.Steps+1) - k*n/(p.Steps+1)",
		"counts[k] = (k+1)*n/p.Steps - k*n/p.Steps", "perturb.TestGradientMaskingOfLinearNet"},
	{"perturb/gradient_masking.go", "g, rows, counts, p.Variant == paperMasking)", "g, rows, counts, false)",
		"perturb.TestGradientMaskingOfLinearNet"},
	{"score/gae_curve.go", "curve = append(curve, 1-d)", "curve = append(curve, 1-1.01*d)",
		"score.TestGAECurves"},
	{"score/gae_curve.go", `p.along(s, "lerf")`, `p.along(s, "morf")`, "score.TestGAECurves"},
	{"score/gae_curve.go", "curve[k] /= s.outputs[order][0] + p.epsilon()",
		"curve[k] -= s.outputs[order][0] + p.epsilon()", "score.TestOfficialGAECurves"},
	{"mosaic/gae.go", "worth[k] = 2*probability(k)/probability(all[m].positive) - 1",
		"worth[k] = 1.01*(2*probability(k)/probability(all[m].positive) - 1)",
		"mosaic.TestOfficialGAEMosaics"},
	{"internal/metric/gae.go", "return difference / (sum + epsilon)",
		"return 1.01 * difference / (sum + epsilon)", "internal/metric.TestGAE"},
	{"internal/metric/gae.go", "return difference / (sum + epsilon)", "return difference",
		"internal/metric.TestGAE"},
	{"internal/metric/gae.go", "maps[t] = morf[t] - lerf[t]", "maps[t] = lerf[t] - morf[t]",
		"internal/metric.TestGAE"},
	{"internal/metric/gae.go", "for t := range morf {", "for t := range len(morf) - 1 {",
		"internal/metric.TestGAE"},
	{"internal/metric/gae.go", "return worth / (total + epsilon)", "return worth", "internal/metric.TestGAE"},
	{"score/gae.go", "consistency := max(0, (robustness+faithfulness)/2)",
		"consistency := max(0, robustness+faithfulness)", "score.TestGAE"},
	{"score/gae.go", "stages.Scalar(consistency*contrast)", "stages.Scalar(1.01*consistency*contrast)",
		"score.TestGAE"},

	// perturb/road
	{"internal/impute/impute.go", "diagonal = 1.0 / 12", "diagonal = 1.01 / 12",
		"internal/impute.TestGoldenSystem"},
	{"internal/impute/impute.go", "if guess > far*largest {", "if guess < 0 {",
		"internal/impute.TestEveryMaskConverges"},

	// score/pic
	{"internal/metric/pic.go", "out[i] = min(max((v-low)/(high-low), 0), 1)",
		"out[i] = min(max(1.01*(v-low)/(high-low), 0), 1)", "score.TestPIC"},
	{"internal/metric/pic.go", "for k, x := range entropies {", "for k, x := range entropies[1:] {",
		"score.TestInformationCurve"},
	{"internal/metric/pic.go", "points = append(points, point{x, most})",
		"points = append(points, point{x, responses[k]})", "score.TestInformationCurve"},

	// in mosaics: score/grid-pointing, score/focus and report/aggatt
	{"score/focus.go", "share := metric.MassAccuracy(values, mask)",
		"share := 1.01 * metric.MassAccuracy(values, mask)", "score.TestFocus"},
	{"internal/metric/mosaic.go", "values[i] = math.Max(0, v) // Max propagates NaN",
		"values[i] = math.Abs(v)", "score.TestGridPointing"},
	{"internal/metric/mosaic.go", "for y := top; y < bottom; y++ {", "for y := top + 1; y < bottom; y++ {",
		"score.TestGridPointing"},

	// robustness and sanity: score/lipschitz, score/sensitivity, score/ssim and score/rank-correlation
	{"score/lipschitz.go", "return euclidean(a, b) / d", "return 1.01 * euclidean(a, b) / d",
		"score.TestRobustnessByHand"},
	{"score/lipschitz.go", "most = math.Max(most, p.ratio(a, b, x, y)) // NaN if one is",
		"most = p.ratio(a, b, x, y)", "score.TestRobustnessByHand"},
	{"score/sensitivity.go", "return most / norm, sum / float64(n) / norm, nil",
		"return most / norm, sum / norm, nil", "score.TestRobustnessByHand"},
	{"score/sensitivity.go", "return most / norm, sum / float64(n) / norm, nil",
		"return 1.01 * most / norm, sum / float64(n) / norm, nil", "score.TestRobustnessByHand"},
	{"internal/metric/ssim.go", "return sum / float64(len(ux))", "return sum",
		"score.TestAgreementOfLibraries"},
	{"internal/metric/ssim.go", "return sum / float64(len(ux))", "return 1.01 * sum / float64(len(ux))",
		"score.TestAgreementOfLibraries"},
	{"score/rank_correlation.go", "return stat.Spearman(x, y), nil", "return 1.01 * stat.Spearman(x, y), nil",
		"score.TestAgreementOfLibraries"},

	// the true attribution: dataset/units, score/truth and stats/agreement
	{"internal/behaviour/truth.go", "((first - none) + (all - second)) / 2, (",
		"1.01 * ((first - none) + (all - second)) / 2, (", "internal/behaviour.TestShapley"},
	{"internal/behaviour/truth.go", "second := value([]float64{reference[0], cells[1]})",
		"second := value([]float64{cells[0], cells[1]})", "internal/behaviour.TestShapley"},
	{"internal/behaviour/kinds.go", "return []float64{f(c[0], 0), -c[1] * f(c[0], 0)}",
		"return []float64{f(c[0], 0), 0}", "internal/behaviour.TestTruthIsComplete"},
	{"internal/behaviour/onnx.go", "biases = append(biases, float32(u.bias))",
		"biases = append(biases, 1.01*float32(u.bias))", "internal/behaviour.TestModel"},
	{"internal/behaviour/images.go", "out[i] = values[n.cellOf(i)] / float64(n.Patch*n.Patch)",
		"out[i] = values[n.cellOf(i)]", "dataset.TestUnits"},
	{"dataset/units.go", "if v != 0 {", "if v > 0 {", "dataset.TestUnits"},
	{"dataset/units.go", "int64(class), int64(1 - class)", "int64(1 - class), int64(class)",
		"dataset.TestUnits"},
	{"internal/behaviour/net.go", "first, second = 0, 0", "first, second = second, first",
		"dataset.TestUnitsFrozen"},
	{"model/units.go", "p.Grid%2 != 0", "p.Grid%3 != 0", "model.TestUnits"},
	{"dataset/background.go", "some = some[:p.Most]", "some = some[:p.Most+1]", "dataset.TestBackground"},
	{"dataset/background.go", "slices.Sort(some)", "slices.Reverse(some)", "dataset.TestBackground"},
	{"score/truth.go", "s.err = math.Sqrt(far / tt)", "s.err = math.Sqrt(1.01 * far / tt)",
		"score.TestTruthByHand"},
	{"score/truth.go", "s.sign = float64(right) / float64(signs)", "s.sign = float64(right)",
		"score.TestTruthByHand"},
	{"score/truth.go", "min(both/math.Sqrt(aa)/math.Sqrt(tt), 1)", "min(both/aa/math.Sqrt(tt), 1)",
		"score.TestTruthByHand"},
	{"score/truth.go", "stat.Tied(a, negligible*largest)", "a", "score.TestTruthByHand"},
	{"score/truth.go", "out[k] += v", "out[k] = v", "score.TestTruthByHand"},
	{"stats/agreement.go", "stat.SpearmanOfCommon(a, b)", "stat.SpearmanOfCommon(a, a)",
		"stats.TestAgreement"},
	{"stats/agreement.go", "same += 0.5", "same++", "stats.TestAgreement"},
	{"stats/agreement.go", "stat.Tied(b, p.Tolerance)", "stat.Tied(b, 0)",
		"stats.TestAgreementWithinTolerance"},
	{"stats/agreement.go", "return means.Quality, b, nil", "return means.Mean, b, nil",
		"stats.TestAgreement"},

	// tests of differences: stats/wilcoxon, stats/friedman and report/leaderboard
	{"internal/stat/wilcoxon.go", "variance := (n*(n+1)*(2*n+1) - ties/2) / 24",
		"variance := (n*(n+1)*(2*n+1) - ties) / 24", "internal/stat.TestScipy"},
	{"internal/stat/wilcoxon.go", "s.P = min(1, 2*signedRankTail(", "s.P = min(1, signedRankTail(",
		"internal/stat.TestScipy"},
	{"internal/stat/holm.go", "float64(len(order)-k)*p[i]", "float64(len(order)-0*k)*p[i]",
		"internal/stat.TestScipy"},
	{"internal/stat/friedman.go", "free := 1 - ties/(n*k*(k*k-1))", "free := 1 - ties/(n*k*(k*k+1))",
		"internal/stat.TestScipy"},
	{"internal/stat/nemenyi.go", "float64(k*(k+1)) / float64(6*n)", "float64(k*(k-1)) / float64(6*n)",
		"internal/stat.TestScipy"},
	{"internal/stat/power.go", "distuv.UnitNormal.CDF(-t*s-shift)", "0*distuv.UnitNormal.CDF(-t*s-shift)",
		"internal/stat.TestScipy"},
	{"internal/scores/compare.go", "case holm && pairs:", "case holm && !pairs:",
		"internal/scores.TestFalseAlarms"},
	{"stats/wilcoxon.go", "t.level = p.Alpha / float64(tests)", "t.level = p.Alpha * float64(tests)",
		"stats.TestWilcoxon"},
	{"stats/friedman.go", "x = -x", "x = +x", "stats.TestFriedman"},
	{"report/leaderboard.go", "return !(m.p[a][b] <= level)", "return m.p[a][b] <= level",
		"report.TestLeaderboard"},

	// claims
	{"internal/claims/grammar.go", "c.Relation == Better && d == stages.Lower:",
		"c.Relation == Better && d == stages.Higher:", "internal/claims.TestScores"},
	{"internal/claims/grammar.go", "math.Pow10(-len(decimals))/2 -", "math.Pow10(-len(decimals)) -",
		"internal/claims.TestEqual"},
	{"internal/claims/outcome.go", "case margin > 0:", "case margin >= 0:", "internal/claims.TestScores"},
	{"internal/claims/outcome.go", "now > t.state ||", "now < t.state ||", "internal/claims.TestAnswer"},
	{"internal/claims/outcome.go", "t.P = slices.Max(t.holding)", "t.P = slices.Min(t.holding)",
		"internal/claims.TestSeveralRivals"},
	{"internal/claims/outcome.go", "!(t.P <= p) {", "!(t.P >= p) {", "internal/claims.TestSeveralRivals"},
	{"internal/claims/outcome.go", "t.P*float64(len(t.holding)+len(t.failing))", "t.P",
		"internal/claims.TestSeveralRivals"},
	{"internal/claims/outcome.go", "p = stat.Holm(p)", "p = stat.Holm(p[:0:0])",
		"internal/claims.TestScores"},

	// what report/sheet shows
	{"report/sheet_items.go", "taken[class] > p.PerClass {", "taken[class] >= p.PerClass {",
		"report.TestSheetSelection"},
	{"report/sheet_items.go", "sum[id] /= float64(n[id])", "sum[id] /= 1",
		"report.TestSheetSelection"},
}

// TestMutantsApply checks that every mutant changes one line, and that its test exists.
func TestMutantsApply(t *testing.T) {
	dir := familyRoot(t)
	for _, m := range mutants {
		b, err := os.ReadFile(filepath.Join(dir, m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(b), m.from); n != 1 {
			t.Errorf("%s has %q %d times", m.file, m.from, n)
		}
		pkg, name := m.test()
		files, err := filepath.Glob(filepath.Join(dir, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			b, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(b), "\nfunc "+name+"(t *testing.T) {")
		}) {
			t.Errorf("no test is called %s", m.noticed)
		}
	}
}

// TestMutants runs the test of every mutant with it, and once without.
func TestMutants(t *testing.T) {
	if os.Getenv("RUNEXP_MUTANTS") == "" {
		t.Skip("it builds each mutant's package: make mutants")
	}
	dir := familyRoot(t)
	for _, m := range mutants {
		t.Run(fmt.Sprintf("%s %s", m.file, m.to), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, m.file))
			if err != nil {
				t.Fatal(err)
			}
			changed, overlay := filepath.Join(t.TempDir(), "mutant.go"), filepath.Join(t.TempDir(), "overlay")
			text := strings.Replace(string(b), m.from, m.to, 1)
			replace, err := json.Marshal(map[string]any{
				"Replace": map[string]string{filepath.Join(dir, m.file): changed}})
			if err != nil {
				t.Fatal(err)
			}
			for file, b := range map[string][]byte{changed: []byte(text), overlay: replace} {
				if err := os.WriteFile(file, b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := m.run(t, dir); err != nil {
				t.Fatalf("it fails without a mutant: %s", out)
			}
			_, name := m.test()
			if out, _ := m.run(t, dir, "-overlay", overlay); !strings.Contains(out, "--- FAIL: "+name) {
				t.Errorf("%s doesn't notice it: %s", m.noticed, out)
			}
		})
	}
}

// test returns the folder below stages and the name of the mutant's test.
func (m mutant) test() (pkg, name string) {
	pkg, name, _ = strings.Cut(m.noticed, ".")
	return pkg, name
}

// run runs the mutant's test.
func (m mutant) run(t *testing.T, dir string, flags ...string) (string, error) {
	pkg, name := m.test()
	args := slices.Concat([]string{"test"}, flags, []string{"-run", "^" + name + "$", "./" + pkg})
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// familyRoot returns the folder stages.
func familyRoot(t *testing.T) string {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "stages")
}

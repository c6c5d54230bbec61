package registry

// A Metric is a metric by its name in the field: what makes it here, and its names in other libraries.
type Metric struct {
	Name string

	// Here lists stages in the order of their work, with the port of the score if there are several, and
	// the parameters that make it this metric: "perturb/noise (distribution: uniform), score/lipschitz".
	Here string

	// Elsewhere lists names in libraries, "Quantus MaxSensitivity, captum sensitivity_max", or is "".
	Elsewhere string
}

// Metrics returns the metrics in the order of their names. A stage may make several.
func Metrics() []Metric {
	return []Metric{
		{"ADCC", "perturb/soft-mask, score/adcc.scores or score/adcc-means", "OpenVINO XAI ADCC"},
		{"agreement of rankings", "stats/agreement", ""},
		{"agreement with the truth", "dataset/units, score/truth", ""},
		{"ARCC", "perturb/soft-mask, perturb/road (values: magnitude), score/arcc.scores", "grad-cam ARCC"},
		{"area between perturbation curves (ABPC)", "perturb/ablation, score/abpc", ""},
		{"area over the perturbation curve (AOPC)", "perturb/region, score/aopc",
			"Quantus RegionPerturbation"},
		{"area under the perturbation curve", "perturb/ablation, score/auc", "Quantus PixelFlipping"},
		{"attribution localisation", "score/mass-accuracy (values: magnitude)",
			"Quantus AttributionLocalisation"},
		{"attribution localisation, weighted", "score/weighted-localisation",
			"Quantus AttributionLocalisation(weighted=True)"},
		{"average drop", "perturb/soft-mask, score/average-drop.drop",
			"xplique AverageDropMetric, grad-cam DropInConfidence"},
		{"average gain", "perturb/soft-mask, score/average-drop.gain", "xplique AverageGainMetric"},
		{"average increase", "perturb/soft-mask, score/average-drop.increase",
			"xplique AverageIncreaseMetric, grad-cam IncreaseInConfidence"},
		{"average precision", "score/average-precision", "ferret AUPRC"},
		{"average sensitivity", "perturb/noise (distribution: uniform), score/sensitivity.average",
			"Quantus AvgSensitivity"},
		{"complexity (entropy)", "score/compactness.entropy", "Quantus Complexity, xplique Complexity"},
		{"concept influence", "score/top-k.influence", ""},
		{"consistency", "score/consistency", "Quantus Consistency"},
		{"deletion", "perturb/deletion, score/rise.deletion", "xplique Deletion"},
		{"drop of the accuracy (Meta-Rank)", "perturb/ablation, score/delta", ""},
		{"effective complexity", "score/compactness.effective-complexity", "Quantus EffectiveComplexity"},
		{"effective heat ratio (EHR)", "score/effective-heat-ratio", ""},
		{"energy-based pointing game", "score/energy-pointing", ""},
		{"faithfulness correlation", "perturb/subset, score/faithfulness-correlation",
			"Quantus FaithfulnessCorrelation"},
		{"faithfulness estimate", "perturb/subset (draw: single, unit: region), score/faithfulness-estimate",
			"Quantus FaithfulnessEstimate"},
		{"Focus", "mosaic/focus, score/focus", "Quantus Focus"},
		{"global attribution evaluation (GAE)", "mosaic/gae, perturb/gradient-masking, score/gae.total", ""},
		{"grid pointing game (GridPG, DiFull, DiPart)", "mosaic/grid, score/grid-pointing", ""},
		{"histogram entropy", "score/compactness.histogram-entropy", ""},
		{"infidelity", "perturb/subset (draw: single, unit: region, region: 4), score/infidelity.scores",
			"Quantus Infidelity, captum infidelity"},
		{"insertion", "perturb/insertion, score/rise.insertion", "xplique Insertion"},
		{"inter-rater reliability (IRR)", "stats/irr", ""},
		{"internal consistency reliability (ICR)", "stats/icr", ""},
		{"intersection over union (IoU)", "score/iou", ""},
		{"iterative removal of features (IROF)",
			"segments/slic (of: input), perturb/ablation (unit: segment, substrate: channel-mean, " +
				"values: signed), score/irof",
			"Quantus IROF"},
		{"local Lipschitz estimate", "perturb/noise, score/lipschitz", "Quantus LocalLipschitzEstimate"},
		{"magnitude-aligned scoring (MAS)", "perturb/insertion, perturb/deletion, score/mas", ""},
		{"max-sensitivity", "perturb/noise (distribution: uniform), score/sensitivity.max",
			"Quantus MaxSensitivity, captum sensitivity_max"},
		{"model parameter randomisation test (MPRT)", "model/randomise, score/rank-correlation or score/ssim",
			"Quantus MPRT, Quantus ModelParameterRandomisation, xplique ModelRandomizationMetric"},
		{"monotonicity", "perturb/ablation (values: signed), score/monotonicity", "Quantus Monotonicity"},
		{"monotonicity correlation",
			"perturb/subset (draw: single, substrate: random, repeats: 100), score/monotonicity-correlation",
			"Quantus MonotonicityCorrelation"},
		{"MST-C", "score/mst-c", "Quantus MSTC"},
		{"mu-fidelity (μFidelity)",
			"perturb/subset (draw: bernoulli, p: 0.2, unit: region), score/mu-fidelity",
			"xplique MuFidelity"},
		{"non-sensitivity", "perturb/subset (draw: single, unit: region), score/non-sensitivity.count",
			"Quantus NonSensitivity"},
		{"performance information curves (SIC, AIC)", "perturb/pic, score/pic", "PAIR compute_pic_metric"},
		{"pointing game", "score/pointing-game", "Quantus PointingGame"},
		{"random logit", "score/ssim or score/rank-correlation",
			"Quantus RandomLogit, xplique RandomLogitMetric"},
		{"relevance mass accuracy", "score/mass-accuracy", "Quantus RelevanceMassAccuracy"},
		{"relevance rank accuracy", "score/rank-accuracy", "Quantus RelevanceRankAccuracy"},
		{"remove and debias (ROAD)", "perturb/road, score/road", "Quantus ROAD, grad-cam ROADCombined"},
		{"ROC AUC", "score/roc-auc", "Quantus AUC"},
		{"selectivity", "perturb/region (region: 8, limit: 0), score/auc", "Quantus Selectivity"},
		{"sensitivity-n", "perturb/subset (substrate: zero), score/sensitivity-n.scores",
			"Quantus SensitivityN"},
		{"single deletion score (SDS, IDSDS)",
			"perturb/subset (draw: single, unit: region, substrate: zero), score/single-deletion",
			""},
		{"sparseness (Gini index)", "score/compactness.gini", "Quantus Sparseness, xplique Sparseness"},
		{"sufficiency", "score/sufficiency", "Quantus Sufficiency, Quantus BatchSufficiency"},
		{"top-k intersection", "score/top-k.scores", "Quantus TopKIntersection"},
	}
}

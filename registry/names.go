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
		{"area between perturbation curves (ABPC)", "perturb/ablation, score/abpc", ""},
		{"area over the perturbation curve (AOPC)", "perturb/region, score/aopc",
			"Quantus RegionPerturbation"},
		{"area under the perturbation curve", "perturb/ablation, score/auc", "Quantus PixelFlipping"},
		{"attribution localisation", "score/mass-accuracy (values: magnitude)",
			"Quantus AttributionLocalisation"},
		{"average sensitivity", "perturb/noise (distribution: uniform), score/sensitivity.average",
			"Quantus AvgSensitivity"},
		{"deletion", "perturb/deletion, score/rise.deletion", "xplique Deletion"},
		{"drop of the accuracy (Meta-Rank)", "perturb/ablation, score/delta", ""},
		{"energy-based pointing game", "score/energy-pointing", ""},
		{"Focus", "mosaic/focus, score/focus", "Quantus Focus"},
		{"global attribution evaluation (GAE)", "mosaic/gae, perturb/gradient-masking, score/gae.total", ""},
		{"grid pointing game (GridPG, DiFull, DiPart)", "mosaic/grid, score/grid-pointing", ""},
		{"insertion", "perturb/insertion, score/rise.insertion", "xplique Insertion"},
		{"inter-rater reliability (IRR)", "stats/irr", ""},
		{"internal consistency reliability (ICR)", "stats/icr", ""},
		{"intersection over union (IoU)", "score/iou", ""},
		{"local Lipschitz estimate", "perturb/noise, score/lipschitz", "Quantus LocalLipschitzEstimate"},
		{"magnitude-aligned scoring (MAS)", "perturb/insertion, perturb/deletion, score/mas", ""},
		{"max-sensitivity", "perturb/noise (distribution: uniform), score/sensitivity.max",
			"Quantus MaxSensitivity, captum sensitivity_max"},
		{"model parameter randomisation test (MPRT)", "model/randomise, score/rank-correlation or score/ssim",
			"Quantus MPRT, Quantus ModelParameterRandomisation, xplique ModelRandomizationMetric"},
		{"performance information curves (SIC, AIC)", "perturb/pic, score/pic", "PAIR compute_pic_metric"},
		{"pointing game", "score/pointing-game", "Quantus PointingGame"},
		{"random logit", "score/ssim or score/rank-correlation",
			"Quantus RandomLogit, xplique RandomLogitMetric"},
		{"relevance mass accuracy", "score/mass-accuracy", "Quantus RelevanceMassAccuracy"},
		{"relevance rank accuracy", "score/rank-accuracy", "Quantus RelevanceRankAccuracy"},
		{"remove and debias (ROAD)", "perturb/road, score/road", "Quantus ROAD, grad-cam ROADCombined"},
		{"selectivity", "perturb/region (region: 8, limit: 0), score/auc", "Quantus Selectivity"},
	}
}

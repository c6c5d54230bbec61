package registry

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// quantusClasses are the metrics of Quantus: those of 0.6.0, MSTC of its main branch, and two former names.
var quantusClasses = []string{
	"Completeness", "InputInvariance", "NonSensitivity",
	"Complexity", "EffectiveComplexity", "MSTC", "Sparseness",
	"FaithfulnessCorrelation", "FaithfulnessEstimate", "IROF", "Infidelity", "Monotonicity",
	"MonotonicityCorrelation", "PixelFlipping", "ROAD", "RegionPerturbation", "Selectivity", "SensitivityN",
	"Sufficiency",
	"AUC", "AttributionLocalisation", "Focus", "PointingGame", "RelevanceMassAccuracy",
	"RelevanceRankAccuracy", "TopKIntersection",
	"EfficientMPRT", "MPRT", "RandomLogit", "SmoothMPRT",
	"AvgSensitivity", "Consistency", "Continuity", "LocalLipschitzEstimate", "MaxSensitivity",
	"RelativeInputStability", "RelativeOutputStability", "RelativeRepresentationStability",
	"BatchSufficiency", "ModelParameterRandomisation",
}

// TestQuantusIsHere checks that each metric of Quantus has a name here.
func TestQuantusIsHere(t *testing.T) {
	if len(quantusClasses) != 40 {
		t.Errorf("%d classes", len(quantusClasses))
	}
	var named []string
	for _, m := range Metrics() {
		for _, name := range strings.Split(m.Elsewhere, ", ") {
			if class, ok := strings.CutPrefix(name, "Quantus "); ok {
				class, _, _ = strings.Cut(class, "(")
				named = append(named, class)
			}
		}
	}
	for _, class := range quantusClasses {
		if !slices.Contains(named, class) {
			t.Errorf("registry/names.go has no metric %q", "Quantus "+class)
		}
	}
	for _, class := range named {
		if !slices.Contains(quantusClasses, class) {
			t.Errorf("registry/names.go names %q, which Quantus doesn't have", class)
		}
	}
}

// madeBy finds stages in [Metric.Here], each with a port and parameters.
var madeBy = regexp.MustCompile(`([a-z0-9]+/[a-z0-9-]+)(?:\.([a-z_-]+))?(?: \(([^)]*)\))?`)

// TestMetricsExist checks that metrics are sorted, that stages, ports and parameters of each exist, and that
// every metric stage makes one.
func TestMetricsExist(t *testing.T) {
	set := Builtin()
	var used []string
	last := ""
	for _, m := range Metrics() {
		if name := strings.ToLower(m.Name); name <= last {
			t.Errorf("registry/names.go: %q isn't in the order of names", m.Name)
		} else {
			last = name
		}
		found := madeBy.FindAllStringSubmatch(m.Here, -1)
		if len(found) == 0 {
			t.Errorf("%s: no stage makes it", m.Name)
		}
		for _, f := range found {
			s, ok := set.Lookup(f[1])
			if !ok {
				t.Errorf("%s: there is no stage %s", m.Name, f[1])
				continue
			}
			used = append(used, s.Name)
			if f[2] != "" && s.Output(f[2]) == nil {
				t.Errorf("%s: %s has no port %s", m.Name, s.Name, f[2])
			}
			for _, a := range strings.Split(f[3], ", ") {
				if name, value, ok := strings.Cut(a, ": "); a != "" && !(ok && takes(s, name, value)) {
					t.Errorf("%s: %s doesn't take %q", m.Name, s.Name, a)
				}
			}
		}
	}
	for _, s := range set.Family("score") {
		scores := slices.ContainsFunc(s.Outputs, func(p stages.Port) bool { return p.Type == stages.Scores })
		if isMetric(s) && scores && !slices.Contains(used, s.Name) && !slices.Contains(unnamed, s.Name) {
			t.Errorf("registry/names.go has no metric of %s", s.Name)
		}
	}
}

// unnamed are scores that aren't metrics of maps: the model's accuracy, and what another score makes of all
// images.
var unnamed = []string{"score/top-1", "score/pic-curve"}

// takes reports whether a stage has a parameter, and, where it is a choice, whether value is one.
func takes(s *stages.Stage, name, value string) bool {
	for _, f := range stages.Fields(s.NewParams()) {
		if f.Name == name {
			return len(f.Choices) == 0 || slices.Contains(f.Choices, value)
		}
	}
	return false
}

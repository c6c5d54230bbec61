package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

var (
	spans      = regexp.MustCompile("`([^`]+)`")
	stageName  = regexp.MustCompile(`^[a-z]+/[a-z0-9-]+$`)
	assignment = regexp.MustCompile(`^[a-z_]+: *(.*)$`)
)

// TestDocsComingFrom checks that every stage, parameter and choice that docs/coming-from.md names exists, and
// its experiments. A row's parameters are those of a stage that the row names, or of any where it names none.
func TestDocsComingFrom(t *testing.T) {
	p := openPage(t, "coming-from.md")
	if n := strings.Count(p.text, "\n"); n > 300 {
		t.Errorf("%d lines", n)
	}
	set, named, assigned := registry.Builtin(), 0, 0
	for i, line := range strings.Split(fences.ReplaceAllString(p.text, ""), "\n") {
		var of []*stages.Stage
		var given []string
		cells := strings.Split(line, "|")
		for _, m := range spans.FindAllStringSubmatch(strings.Join(cells[min(2, len(cells)-1):], "|"), -1) {
			if stageName.MatchString(m[1]) {
				s, ok := set.Lookup(m[1])
				if !ok {
					t.Errorf("%s has no stage %s", p.file, m[1])
					continue
				}
				of, named = append(of, s), named+1
			} else if assignment.MatchString(m[1]) {
				given = append(given, strings.Split(m[1], ", ")...)
			}
		}
		if len(of) == 0 {
			for _, name := range set.Names() {
				s, _ := set.Lookup(name)
				of = append(of, s)
			}
		}
		for _, a := range given {
			assigned++
			name, value, _ := strings.Cut(a, ":")
			value = strings.TrimSpace(value)
			if !slices.ContainsFunc(of, func(s *stages.Stage) bool { return takes(s, name, value) }) {
				t.Errorf("%s, row %d: no stage of the row takes %q", p.file, i+1, a)
			}
		}
	}
	if named < 60 || assigned < 40 {
		t.Errorf("%d stages and %d parameters are named", named, assigned)
	}
	experiments := 0
	p.write("net.onnx", []byte(page(t, "experiments/quickstart/resnet.onnx")))
	p.write("photos/a/1.png", []byte(page(t, "stages/internal/picture/testdata/420.jpg.rgb.png")))
	for _, f := range fencesOf(p.text) {
		if f.info != "yaml" {
			continue
		}
		experiments++
		p.write("x.yaml", []byte(f.body))
		x, err := plan.Load(p.path("x.yaml"), registry.Builtin(), plan.Overrides{})
		if err != nil {
			t.Errorf("%s:%d: %v", p.file, f.line, err)
		} else if len(x.Warnings) > 0 {
			t.Errorf("%s:%d: %v", p.file, f.line, x.Warnings)
		}
	}
	if experiments != 4 {
		t.Errorf("%d experiments", experiments)
	}
}

// theirs are the public names of libraries that docs/coming-from.md translates: captum 0.9.0, shap 0.51.0
// and lime 0.2.0.1. docs/equality/run compares those of captum, Quantus and pytorch-grad-cam with the
// packages.
var theirs = []string{
	"Saliency", "InputXGradient", "IntegratedGradients", "DeepLift", "DeepLiftShap", "GradientShap",
	"GuidedBackprop", "Deconvolution", "GuidedGradCam", "Occlusion", "FeatureAblation",
	"FeaturePermutation", "ShapleyValueSampling", "ShapleyValues", "Lime", "LimeBase", "KernelShap", "LRP",
	"NoiseTunnel", "InternalInfluence", "LayerActivation", "LayerConductance", "LayerDeepLift",
	"LayerDeepLiftShap", "LayerFeatureAblation", "LayerFeaturePermutation", "LayerGradCam",
	"LayerGradientShap", "LayerGradientXActivation", "LayerIntegratedGradients", "LayerLRP",
	"NeuronConductance", "NeuronDeconvolution", "NeuronDeepLift", "NeuronDeepLiftShap",
	"NeuronFeatureAblation", "NeuronGradient", "NeuronGradientShap", "NeuronGuidedBackprop",
	"NeuronIntegratedGradients", "DataLoaderAttribution", "LLMAttribution", "LLMGradientAttribution",
	"RemoteLLMAttribution",
	"metrics.infidelity", "metrics.sensitivity_max",
	"Explainer", "AdditiveExplainer", "CoalitionExplainer", "DeepExplainer", "ExactExplainer",
	"GPUTreeExplainer", "GradientExplainer", "KernelExplainer", "LinearExplainer", "PartitionExplainer",
	"PermutationExplainer", "SamplingExplainer", "TreeExplainer",
	"LimeImageExplainer().explain_instance", "get_image_and_mask", "LimeTabularExplainer",
	"LimeTextExplainer", "SubmodularPick",
}

// TestComingFromIsComplete checks that docs/coming-from.md has a row for each of the names of libraries, and
// for each metric of Quantus that registry.Metrics names.
func TestComingFromIsComplete(t *testing.T) {
	text := page(t, "docs/coming-from.md")
	names := slices.Clone(theirs)
	for _, m := range registry.Metrics() {
		for _, name := range strings.Split(m.Elsewhere, ", ") {
			if class, ok := strings.CutPrefix(name, "Quantus "); ok {
				names = append(names, class)
			}
		}
	}
	if len(names) < 90 {
		t.Errorf("%d names", len(names))
	}
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/coming-from.md has no row of `%s`", name)
		}
	}
}

// takes reports whether a stage has a parameter, and, where it is a choice, whether value is one.
func takes(s *stages.Stage, name, value string) bool {
	for _, f := range stages.Fields(s.NewParams()) {
		if f.Name == name {
			return value == "" || len(f.Choices) == 0 || slices.Contains(f.Choices, value)
		}
	}
	return false
}

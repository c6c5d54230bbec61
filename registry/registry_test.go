package registry

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

type blurParams struct {
	Sigma  float64  `yaml:"sigma" doc:"standard deviation in pixels" min:"0.1" max:"20"`
	Border string   `yaml:"border" doc:"what lies beyond the edge" choices:"mirror|zero"`
	Files  []string `yaml:"files" doc:"kernels to read" file:"read"`
	Passes int      `yaml:"passes" doc:"how often" min:"1"`
	Exact  bool     `yaml:"exact" doc:"no shortcuts"`
}

func example() *Set {
	blur := stages.New(stages.Def[blurParams]{
		Name: "perturb/blur", Version: 1, Seeded: true,
		Doc: "Gaussian blur\n\nEvery channel by itself.",
		Inputs: []stages.Port{{Name: "images", Type: stages.Images, Doc: "what to blur"},
			{Name: "targets", Type: stages.Targets, Optional: true, Else: "model/predict"}},
		Outputs:  []stages.Port{{Name: "images", Type: stages.Images, Doc: "the blurred ones"}},
		Defaults: blurParams{Sigma: 2, Border: "mirror", Passes: 1},
		Variants: []stages.Variant{{Item: "border", Default: "paper", Differs: "official repeats the edge",
			Golden: "blur"}},
		Run: func(context.Context, blurParams, *stages.Env) error { return nil },
	})
	list := stages.New(stages.Def[struct{}]{
		Name: "dataset/list", Doc: "a list of files", Version: 1,
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}},
		Run:     func(context.Context, struct{}, *stages.Env) error { return nil },
	})
	return New(blur, list)
}

func TestSet(t *testing.T) {
	s := example()
	if got, want := s.Names(), []string{"dataset/list", "perturb/blur"}; !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
	if st, ok := s.Lookup("perturb/blur"); !ok || st.Name != "perturb/blur" {
		t.Errorf("Lookup found %v, %t", st, ok)
	}
	if _, ok := s.Lookup("perturb/blue"); ok {
		t.Error("Lookup found a stage that isn't there")
	}
	if got := s.Family("perturb"); len(got) != 1 || got[0].Name != "perturb/blur" {
		t.Errorf("Family(perturb) = %v", got)
	}
}

func TestDescribe(t *testing.T) {
	s, _ := example().Lookup("perturb/blur")
	var b strings.Builder
	if err := Describe(&b, s); err != nil {
		t.Fatal(err)
	}
	want := `perturb/blur: Gaussian blur

Every channel by itself.

relation
  each: one item in, one item out; random, from the experiment's seed

inputs
  images   images   what to blur
  targets  targets  unwired: taken from model/predict

outputs
  images  images  the blurred ones

parameters
  sigma   number, 0.1 … 20            2       standard deviation in pixels
  border  mirror | zero               mirror  what lies beyond the edge
  files   list of paths or addresses  []      kernels to read
  passes  int, ≥ 1                    1       how often
  exact   true | false                false   no shortcuts

where paper and code differ
  border  default paper  official repeats the edge
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestVariants(t *testing.T) {
	var b strings.Builder
	if err := Variants(&b, example().Family("")); err != nil {
		t.Fatal(err)
	}
	want := "stage         item    default  golden  what differs\n" +
		"perturb/blur  border  paper    blur    official repeats the edge\n"
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	want := "| family | stages |\n|---|---|\n| [dataset](stages/dataset) | list |\n| " +
		"[perturb](stages/perturb) | blur |\n"
	if got := example().Markdown(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

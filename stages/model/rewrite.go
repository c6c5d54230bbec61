package model

import (
	"context"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/variant"
)

// A rewriting is the parameters of a stage that rewrites models.
type rewriting interface{ rewriter() variant.Rewriter }

// rewriteStage declares a stage that makes a model of a model. It stores the digest of that and its
// parameters, and neither weights nor a graph.
func rewriteStage[P rewriting](d stages.Def[P], port string) stages.Stage {
	d.Relation = stages.Whole
	d.Inputs = []stages.Port{{Name: "model", Type: stages.Model, Doc: "the model that is rewritten"}}
	d.Outputs = []stages.Port{{Name: "model", Type: stages.Model, Doc: port, Base: "model"}}
	d.Run = func(ctx context.Context, p P, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		m, err := n.Rewritten(ctx, p.rewriter())
		if err != nil {
			return err
		}
		payload, err := m.Encode()
		if err != nil {
			return err
		}
		e.Set("model", payload)
		labels := e.Facts("model")["labels"]
		if labels != "" {
			labels = strings.Join(slices.Repeat([]string{labels}, m.Spec.Classes/n.Classes), "\n")
		}
		e.SetFacts("model", factsOf(m.Spec, labels))
		return nil
	}
	return stages.New(d)
}

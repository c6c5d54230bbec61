package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// baselines are the methods that others have to beat; a tournament doesn't choose among them.
var baselines = []string{"constant", control}

// control is the baseline that finalists are tested against, too.
const control = "random"

// settings returns the methods of a new experiment and further ones, with several values of their main
// parameters, those with the fewest passes first: layer, backward pass, steps, noise, γ, windows, masks.
func (s *starter) settings() []candidate {
	feed := s.Model.Feed
	side := min(feed.Height, feed.Width)
	windows := fmt.Sprintf("window: %d, stride: %d", div(side, 4), div(side, 8))
	const lrp = "epsilon: 0.25, stabiliser: 0.01, "
	all := append(s.candidates(),
		candidate{"saliency-balanced", "saliency", "reduce: abs-sum, backward: balanced", anyKind, 3},
		candidate{"input-x-gradient-balanced", "input-x-gradient", "backward: balanced", anyKind, 3},
		candidate{"input-x-gradient-attn-lrp", "input-x-gradient", "backward: attn-lrp", transformer, 3},
		candidate{"integrated-gradients-8", "integrated-gradients", "steps: 8", anyKind, 24},
		candidate{"integrated-gradients-balanced", "integrated-gradients", "steps: 8, backward: balanced",
			anyKind, 24},
		candidate{"smoothgrad-0.3", "smoothgrad", "samples: 12, noise: 0.3, reduce: abs-sum", anyKind, 36},
		candidate{"smoothgrad-square", "smoothgrad", "samples: 12, mean: square", anyKind, 36},
		candidate{"deeplift", "deeplift", "", anyKind, 6},
		candidate{"lrp-gamma-0.25", "lrp-gamma", "gamma: 0.25, stabiliser: 0.01", anyKind, 4},
		candidate{"lrp-gamma-1", "lrp-gamma", "gamma: 1, stabiliser: 0.01", anyKind, 4},
		candidate{"lrp-box", "lrp-composite", lrp + "preset: epsilon-gamma-box", convolutional, 4},
		candidate{"lrp-alpha2-beta1", "lrp-composite", lrp + "preset: epsilon-alpha2-beta1-flat",
			convolutional, 4},
		candidate{"attn-lrp-gamma", "attn-lrp", "", transformer, 4},
		candidate{"attn-lrp-gamma-1", "attn-lrp", "conv_gamma: 1, linear_gamma: 0.2", transformer, 4},
		candidate{"cp-lrp", "cp-lrp", "", transformer, 4},
		candidate{"generic-attention", "generic-attention", "", transformer, 4},
		candidate{"grad-cam-middle", "grad-cam", "layer: middle", anyKind, 2},
		candidate{"hires-cam-middle", "hires-cam", "layer: middle", anyKind, 2},
		candidate{"hires-cam-balanced", "hires-cam", "backward: balanced", transformer, 2},
		candidate{"layer-cam-middle", "layer-cam", "layer: middle", convolutional, 2},
		candidate{"xgrad-cam", "xgrad-cam", "", convolutional, 2},
		candidate{"refine-cam", "refine-cam", "", convolutional, 3},
		candidate{"eigen-cam", "eigen-cam", "", anyKind, 1},
		candidate{"recipro-cam", "recipro-cam", "", anyKind, 50},
		candidate{"occlusion-large", "occlusion", windows, anyKind, 7 * 7},
		candidate{"rise-4", "rise", "masks: 400, cells: 4", anyKind, 400},
		candidate{"rise-1600", "rise", "masks: 1600, cells: 7", anyKind, 1600},
	)
	unfit := func(c candidate) bool {
		return slices.Contains(baselines, c.id) || c.suits != anyKind && c.suits != s.kind()
	}
	all = slices.DeleteFunc(all, unfit)
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.cost, b.cost) })
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(c candidate) bool {
		again := seen[c.id] || seen[c.method+" "+c.with]
		seen[c.id], seen[c.method+" "+c.with] = true, true
		return again
	})
}

// line writes a candidate as a line of an experiment's axis.
func (c candidate) line() string {
	line := fmt.Sprintf("%-21s {uses: attribute/%s", c.id+":", c.method)
	if c.with != "" {
		line += ", with: {" + c.with + "}"
	}
	return line + "}"
}

// An absence is why a candidate isn't in a tournament.
type absence struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// split divides candidates into those that the model takes, and the others with the reason, which is that of
// "runexp check".
func (t *tournament) split(ctx context.Context, all []candidate) (
	fit []candidate, unfit []absence, err error,
) {
	var models registry.Models
	fits := func(c *plan.Cell) error { return models.Unfit(ctx, used(c)) }
	for _, c := range all {
		if f := t.fit(c.method); !f.Fits || f.Why != "" && !f.Hides {
			unfit = append(unfit, absence{c.id, oneClause(f.Why)})
			continue
		}
		if !strings.Contains(c.with, "layer:") && !strings.Contains(c.with, "backward:") {
			fit = append(fit, c) // the inspection has tried it
			continue
		}
		_, err := t.plan([]candidate{c}, "", plan.Overrides{Fits: fits})
		var diags plan.Diags
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case err == nil:
			fit = append(fit, c)
		case errors.As(err, &diags):
			unfit = append(unfit, absence{c.id, oneClause(diags[0].Msg)})
		default:
			return nil, nil, err
		}
	}
	return fit, unfit, nil
}

// oneClause returns a text's first clause, on one line.
func oneClause(text string) string {
	text, _, _ = strings.Cut(strings.Join(strings.Fields(text), " "), "; ")
	return text
}

// chosen returns the candidates but those that are named, by their ids or by their methods. A method without
// candidates, as one for other models, may be named, too.
func chosen(all []candidate, without string) ([]candidate, error) {
	if without == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(without, ",") {
		before := len(all)
		var known []string
		all = slices.DeleteFunc(slices.Clone(all), func(c candidate) bool {
			known = append(known, c.id, c.method)
			return c.id == name || c.method == name
		})
		if _, method := registry.Builtin().Lookup("attribute/" + name); len(all) == before && !method {
			return nil, usage(fmt.Errorf("--without: no candidate is called %q", name),
				plan.Guess(name, known))
		}
	}
	return all, nil
}

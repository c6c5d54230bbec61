package main

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/registry"
)

// A kind is a class of models for which methods are suitable.
type kind int

const (
	anyKind kind = iota
	convolutional
	transformer
)

// A candidate is an attribution method that a starter may compare.
type candidate struct {
	id     string // id in the experiment
	method string // name without the family attribute
	with   string // its parameters
	suits  kind
	cost   int // forward passes an image; a backward pass counts as two
}

// candidates returns the methods that suit some model, with their parameters for this model.
func (s *starter) candidates() []candidate {
	feed := s.Model.Feed
	side, samples := min(feed.Height, feed.Width), 24/s.Coarse
	channels := 0
	if s.Model.Final != nil {
		fmt.Sscan(s.Model.Final.Shape[1], &channels)
	}
	occlusion := fmt.Sprintf("window: %d, stride: %d", div(side, 7), div(side*s.Coarse, 14))
	path, noisy := fmt.Sprintf("steps: %d", samples), fmt.Sprintf("samples: %d, reduce: abs-sum", samples)
	return []candidate{
		{"constant", "constant", "", anyKind, 0},
		{"random", "random", "reduce: abs-sum", anyKind, 0},
		{"saliency", "saliency", "reduce: abs-sum", anyKind, 3},
		{"input-x-gradient", "input-x-gradient", "", anyKind, 3},
		{"integrated-gradients", "integrated-gradients", path, anyKind, 3 * samples},
		{"smoothgrad", "smoothgrad", noisy, anyKind, 3 * samples},
		{"guided-backprop", "guided-backprop", "reduce: abs-sum", convolutional, 3},
		{"abslrp", "abslrp", "", anyKind, 8},
		{"lrp", "lrp-composite", "epsilon: 0.25, stabiliser: 0.01", anyKind, 4},
		{"attn-lrp", "lrp-epsilon", "gates: halved, stabiliser: 0.01", transformer, 4},
		{"raw-attention", "raw-attention", "", transformer, 1},
		{"attention-rollout", "attention-rollout", "", transformer, 1},
		{"tibav", "tibav", "", transformer, 6},
		{"transition-attention", "transition-attention", "", transformer, 60},
		{"grad-cam", "grad-cam", "", anyKind, 2},
		{"grad-cam-plus-plus", "grad-cam-plus-plus", "", convolutional, 2},
		{"hires-cam", "hires-cam", "", convolutional, 2},
		{"layer-cam", "layer-cam", "", convolutional, 2},
		{"ablation-cam", "ablation-cam", "", convolutional, channels},
		{"score-cam", "score-cam", "", convolutional, channels},
		{"occlusion", "occlusion", occlusion, anyKind, 13 * 13 / s.Coarse / s.Coarse},
		{"rise", "rise", "masks: 400, cells: 7", anyKind, 400},
	}
}

// choose divides candidates into methods to compare, as lines of the experiment, and methods to leave
// out, as comments with the reason: they don't suit the model, or cost more passes than costly. It returns
// the passes for all maps of an image.
func (s *starter) choose(from []candidate, costly int) (passes int) {
	s.Methods, s.Others = nil, nil
	unfit := map[string]int{} // index in Others by reason
	for _, c := range from {
		if c.suits != anyKind && c.suits != s.kind() {
			continue
		}
		line := c.line()
		switch f := s.fit(c.method); {
		case !f.Fits || f.Why != "" && !f.Hides:
			why := oneClause(f.Why)
			if k, ok := unfit[why]; ok {
				s.Others[k] = c.id + ", " + s.Others[k]
				continue
			}
			unfit[why], s.Others = len(s.Others), append(s.Others, c.id+": "+why)
			continue
		case c.cost > costly:
			per := "an image"
			if s.Model.Texts != nil {
				per = "a text"
			}
			s.Others = append(s.Others, fmt.Sprintf("%s  # %d passes %s", line, c.cost, per))
			continue
		}
		s.Methods, passes = append(s.Methods, line), passes+c.cost
	}
	return passes
}

// kind recognises a transformer by the softmax of its attention; the softmax of its classes isn't in the
// simplified graph.
func (s *starter) kind() kind {
	attends := func(n registry.NodeCount) bool { return n.Operator == "Softmax" }
	if slices.ContainsFunc(s.Model.Simplified, attends) {
		return transformer
	}
	return convolutional
}

func (s *starter) fit(method string) registry.Fit {
	for _, f := range s.Model.Methods {
		if f.Method == "attribute/"+method {
			return f
		}
	}
	return registry.Fit{Why: "not known of this model"}
}

// div divides, and returns at least 1.
func div(a, b int) int { return max(1, a/b) }

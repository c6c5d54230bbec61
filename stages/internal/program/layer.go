package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Layer returns the value of the graph that a layer is: the embedding of texts for input, middle and final as
// [relevance.Layers] finds them, or the value with that name, or the one that simplification left of it.
func (n *Net) Layer(ctx context.Context, slot stages.Slot, layer string) (_ string, err error) {
	defer onnx.Sound(&err)
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return "", err
	}
	middle, final, err := n.layers(slot, g)
	if err != nil {
		return "", err
	}
	name := layer
	switch {
	case layer == "input" && n.Text != nil:
		if name = n.Text.Embedding; name == "" {
			return "", stages.BadField("layer", "layer %q: no value of the model has a vector for each "+
				"token that follows from its id alone: name by layer the value to explain, or take a method "+
				"that only asks for answers, such as occlusion", layer)
		}
	case layer == "middle":
		name = middle
	case layer == "final":
		name = final
	}
	if name == modelfile.NoLayer && name != layer {
		return "", stages.BadField("layer", "layer %q: the model puts the cells of a grid together at "+
			"feature maps, and has none there", layer)
	}
	if name == "" && n.Text != nil {
		return "", stages.BadField("layer", "layer %q: the model has no inner value that everything passes "+
			"through and that has a vector for each token; name one of its values", layer)
	}
	if name == "" {
		return "", stages.BadField("layer",
			"layer %q: the model has no inner value that everything passes through and whose places are "+
				"told: feature maps of the image's proportions, or a square grid of tokens; name one of "+
				"its values", layer)
	}
	if g.Shape(name) == nil {
		same, near := n.replaced(g, name)
		if near != "" {
			return "", stages.BadField("layer", "layer %q: %s", layer, near)
		}
		name = cmp.Or(same, name)
	}
	if g.Shape(name) == nil {
		return "", unknownLayer(g, layer, middle, final)
	}
	if n.Text != nil {
		return name, n.checkTokens(g, layer, name)
	}
	return name, checkPlaces(g, layer, name)
}

// unknownLayer is the error of a layer that the graph doesn't have.
func unknownLayer(g *onnx.Graph, layer, middle, final string) error {
	names, such := []string{"input", "middle", "final"}, ""
	for _, v := range slices.Sorted(maps.Keys(g.Types)) {
		if g.Weight(v) == nil {
			names = append(names, v)
		}
	}
	if final != "" {
		such = fmt.Sprintf("; middle is called %q, and final %q", middle, final)
	}
	return stages.BadName("layer", layer, names,
		"layer %q: no value of the model's graph, once it is simplified, is called so%s", layer, such)
}

// checkTokens returns an error if a layer's value hasn't a vector for each token of the texts.
func (n *Net) checkTokens(g *onnx.Graph, layer, name string) error {
	if s := g.Shape(name); len(s) != 3 || s[1] != n.Width {
		return stages.BadField("layer", "layer %q: its value has shape %v, and not a vector for each of %d "+
			"tokens", layer, s, n.Width)
	}
	return nil
}

// checkPlaces returns an error if a layer's value has tokens whose places in the image are unknown, or none.
func checkPlaces(g *onnx.Graph, layer, name string) error {
	s := g.Shape(name)
	if len(s) == 3 && !relevance.Signal(g) {
		tokens := s[3-relevance.ChannelAxis(g, name)]
		if !relevance.Places(g.Tokens, tokens).IsZero() && !relevance.SureGrid(g, tokens) {
			at := relevance.Places(g.Tokens, tokens)
			return stages.BadField("layer", "layer %q: %d tokens could be %d×%d patches behind %d "+
				"others, and nothing in the model says that they are: name a layer of feature maps, or one "+
				"whose tokens are a square grid with at most %d before it, or state by the parameter tokens "+
				"of model/onnx how they lie in the image, such as tokens: %v", layer, tokens, at.Height,
				at.Width, at.Prefix, relevance.SurePlaces, relevance.Suggested(g, tokens))
		}
	}
	if len(s) >= 3 && s[len(s)-1] == s[len(s)-2] && s[len(s)-1] > 1 {
		if n := g.Producer(name); n != nil && n.OpType == "Softmax" {
			return stages.BadField("layer", "layer %q: attention of tokens to tokens, %v, has no places in "+
				"the image; methods of attention look at it", layer, s[1:])
		}
	}
	return nil
}

// layers returns the values that are the middle and the final layer, which slots find once.
func (n *Net) layers(slot stages.Slot, g *onnx.Graph) (middle, final string, err error) {
	c, err := slot.Share("layers of "+n.digest.String(), 0, func() (io.Closer, error) {
		middle, final := lower.Layers(n.Spec, g)
		return namedLayers{middle, final}, nil
	})
	if err != nil {
		return "", "", err
	}
	found := c.(namedLayers)
	return found.middle, found.final, nil
}

type namedLayers struct{ middle, final string }

func (namedLayers) Close() error { return nil }

// Patches reports whether the net multiplies values by the output of a softmax, as attention does, and
// returns the output of the Conv that embeds the image's patches, "" without one.
func (n *Net) Patches(ctx context.Context, slot stages.Slot) (attention bool, embedding string, err error) {
	defer onnx.Sound(&err)
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return false, "", err
	}
	return relevance.HasAttention(g), relevance.PatchEmbedding(g), nil
}

// Package textnet finds in the graph of an ONNX model how it takes texts: which of its inputs are the ids of
// tokens, the attention mask and the token types (inputs.go), and which value has a vector for each token
// (embedding.go).
package textnet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// Channels names the channels of a text.
var Channels = [modelfile.TextChannels]string{"ids", "attention mask", "token types"}

// Inputs returns the inputs of a model that takes texts, the one with the ids first. It returns none if the
// model takes no texts, and an error if it takes more than a classifier of texts does. The input with the ids
// is called input, or if that is empty, it is the only one that may have them.
func Inputs(m *onnx.Model, input string) (out []rewrite.TextInput, err error) {
	all := m.Inputs()
	for i, in := range all {
		if !in.Known && idsNamed(in.Name) {
			all[i].Shape, all[i].Known = []int{onnx.Free, onnx.Free}, true
		}
	}
	ids := slices.DeleteFunc(slices.Clone(all), func(in onnx.Value) bool { return !mayBeIDs(m, in, input) })
	switch {
	case len(ids) == 0:
		return nil, without(all, input)
	case len(ids) > 1 && slices.ContainsFunc(ids,
		func(in onnx.Value) bool { return role(in) == roleDecoder }):
		return nil, roleDecoder.refuse(ids[len(ids)-1])
	case len(ids) > 1:
		return nil, stages.BadField("input", "the inputs %q and %q may both be the text's ids: name the one "+
			"with its ids by input", ids[0].Name, ids[1].Name)
	}
	out = []rewrite.TextInput{{Value: ids[0], Channel: modelfile.TextIDs}}
	for _, in := range all {
		if in.Name == ids[0].Name {
			continue
		}
		channel := role(in).channel()
		switch {
		case channel < 0:
			return nil, role(in).refuse(in)
		case len(in.Shape) != 2:
			return nil, fmt.Errorf("input %q is a text's %s and has shape %v: it must have a number for "+
				"each token, [texts, tokens]", in.Name, Channels[channel], in.Shape)
		}
		same := func(o rewrite.TextInput) bool { return o.Channel == channel }
		if i := slices.IndexFunc(out, same); i >= 0 {
			return nil, fmt.Errorf("the inputs %q and %q may both be the text's %s: export the model "+
				"with one",
				out[i].Name, in.Name, Channels[channel])
		}
		out = append(out, rewrite.TextInput{Value: in, Channel: channel})
	}
	slices.SortFunc(out, func(a, b rewrite.TextInput) int { return a.Channel - b.Channel })
	return out, nil
}

// mayBeIDs reports whether an input may have the ids of tokens: it has integers, or floating-point numbers
// that are used as such, for each token, and its name doesn't say otherwise. One that isn't called like ids
// must look something up.
func mayBeIDs(m *onnx.Model, in onnx.Value, input string) bool {
	switch {
	case input != "" && in.Name != input, !in.Known || len(in.Shape) != 2:
		return false
	case input == "" && role(in) != roleIDs && role(in) != roleDecoder:
		return false
	case whole(in.Elem):
		return input != "" || idsNamed(in.Name) || looksUp(m.Proto.Graph, in.Name)
	}
	return in.Elem == onnxpb.TensorProto_FLOAT && Find(m, in.Name).Tables > 0
}

func whole(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_INT8, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT16,
		onnxpb.TensorProto_UINT16, onnxpb.TensorProto_INT32, onnxpb.TensorProto_INT64:
		return true
	}
	return false
}

// Largest returns the number of ids that fit into an input of this type, 0 for no bound of interest.
func Largest(t onnxpb.TensorProto_DataType) int {
	switch t {
	case onnxpb.TensorProto_INT8:
		return 1 << 7
	case onnxpb.TensorProto_UINT8:
		return 1 << 8
	case onnxpb.TensorProto_INT16:
		return 1 << 15
	case onnxpb.TensorProto_UINT16:
		return 1 << 16
	}
	return 0
}

// idsNamed reports whether an input is called as exporters call the ids of tokens.
func idsNamed(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), ":")
	switch name {
	case "ids", "input_ids", "token_ids", "word_ids", "input_word_ids", "tokens", "input_tokens":
		return true
	}
	return false
}

// looksUp reports whether a graph chooses anything by the numbers of an input.
func looksUp(g *onnxpb.GraphProto, input string) bool {
	at := map[string]bool{input: true}
	for _, proto := range g.Node {
		if !slices.ContainsFunc(onnx.Taken(proto), func(v string) bool { return at[v] }) {
			continue
		}
		n := onnx.Node{NodeProto: proto}
		switch n.OpType {
		case "Shape", "Size":
			continue
		case "Gather", "GatherElements", "GatherND":
			if at[n.In(1)] {
				return true
			}
		case "OneHot", "Equal", "Loop", "Scan", "If":
			return true
		case "Conv", "Gemm", "MatMul":
			continue // they take numbers, not names of tokens
		}
		for _, v := range n.Output {
			at[v] = true
		}
	}
	return false
}

// A textRole is what an input is for, by its name and type.
type textRole int

const (
	roleIDs textRole = iota
	roleMask
	roleTypes
	rolePositions
	roleDecoder
	roleCache
	roleImage
	roleVectors
	roleLabels
	roleStrings
	roleOther
)

func role(in onnx.Value) textRole {
	low := strings.ToLower(in.Name)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case in.Elem == onnxpb.TensorProto_STRING:
		return roleStrings
	case has("decoder", "encoder_"):
		return roleDecoder
	case has("past", "cache"):
		return roleCache
	case has("pixel", "image") || in.Known && len(in.Shape) == 4:
		return roleImage
	case has("embeds"):
		return roleVectors
	case has("position"):
		return rolePositions
	case has("label"):
		return roleLabels
	case has("mask"):
		return roleMask
	case has("type", "segment"):
		return roleTypes
	case in.Known && len(in.Shape) == 2:
		return roleIDs
	}
	return roleOther
}

// channel returns the channel of a text that an input of this role takes, −1 if none.
func (r textRole) channel() int {
	switch r {
	case roleMask:
		return modelfile.TextAttention
	case roleTypes:
		return modelfile.TextTypes
	}
	return -1
}

// refuse returns the error for an input that classifiers of texts don't have, with the way out.
func (r textRole) refuse(in onnx.Value) error {
	why := "export the model without it"
	switch r {
	case rolePositions:
		why = "positions follow from these, so export the model without it: it counts them itself"
	case roleDecoder:
		return fmt.Errorf("input %q is that of a decoder: a model from texts to texts has no classes; "+
			"export a sequence classifier", in.Name)
	case roleCache:
		return fmt.Errorf("input %q is the cache of a language model, which continues texts: export it as a "+
			"sequence classifier, without a cache (task text-classification, use_cache=False)", in.Name)
	case roleImage:
		return fmt.Errorf("input %q takes images: the model takes images and texts at once; export the part "+
			"that takes one of them, with the vectors of the others as its last layer's weights", in.Name)
	case roleVectors:
		why = "vectors of tokens follow from their ids, so export the model with one of both"
	case roleLabels:
		why = "export the model without its loss"
	}
	return fmt.Errorf("input %q isn't one of a text's ids, attention mask and token types: %s", in.Name, why)
}

// without returns the error of a model that takes texts without ids, nil for one that doesn't take texts.
func without(all []onnx.Value, input string) error {
	if input != "" {
		return nil
	}
	for _, in := range all {
		switch role(in) {
		case roleStrings:
			return fmt.Errorf("input %q takes strings: the tokeniser is part of the file; export the model "+
				"behind it, which takes ids", in.Name)
		case roleVectors:
			return fmt.Errorf("input %q takes vectors of tokens: export the model with input_ids, so that "+
				"it has its embedding", in.Name)
		}
	}
	if in := all; len(in) == 1 && in[0].Known && len(in[0].Shape) == 2 && whole(in[0].Elem) {
		return fmt.Errorf("input %q takes %v numbers, and no table is looked up by them: neither an image "+
			"[images, channels, height, width] nor the ids of a text's tokens", in[0].Name, in[0].Shape)
	}
	return nil
}

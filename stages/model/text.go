package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

const (
	// longestText is the largest number of tokens of a text, if neither the file nor the parameters state it.
	longestText = 512
	// judgedLength is the number of tokens of the texts by which a model's answers are judged, where it takes
	// any number.
	judgedLength = 24
)

// takesTexts reports whether a model's inputs take texts: integers [N, n], and nothing else but a mask.
func takesTexts(m *onnx.Model, p ONNXParams) bool {
	ids := false
	for _, in := range m.Inputs() {
		if !in.Known || len(in.Shape) != 2 {
			return false
		}
		whole := integers(in.Elem)
		ids = ids || whole && (p.Input == "" || p.Input == in.Name)
		if !whole && (channelNamed(in.Name) != modelfile.TextAttention || !floating(in.Elem)) {
			return false
		}
	}
	return ids
}

// channelNamed returns the channel of texts that an input with this name takes: the ids, unless the name
// says otherwise; −1 for positions.
func channelNamed(name string) int {
	switch low := strings.ToLower(name); {
	case strings.Contains(low, "position"):
		return -1
	case strings.Contains(low, "mask"):
		return modelfile.TextAttention
	case strings.Contains(low, "type") || strings.Contains(low, "segment"):
		return modelfile.TextTypes
	}
	return modelfile.TextIDs
}

// textInputs returns the inputs of a model of texts, the one with the ids first.
func textInputs(m *onnx.Model, p ONNXParams) (out []rewrite.TextInput, err error) {
	var names [modelfile.TextChannels]string
	for _, in := range m.Inputs() {
		channel := channelNamed(in.Name)
		if p.Input != "" && channel <= modelfile.TextIDs {
			channel = -1
		}
		if in.Name == p.Input {
			channel = modelfile.TextIDs
		}
		switch {
		case channel < 0:
			return nil, fmt.Errorf("input %q isn't one of a text's ids, attention mask and token types: "+
				"positions follow from these, so export the model without it", in.Name)
		case names[channel] != "":
			return nil, stages.BadField("input", "the inputs %q and %q may both be the text's %s: name the "+
				"one with its ids by input", names[channel], in.Name, textChannels[channel])
		}
		names[channel] = in.Name
		out = append(out, rewrite.TextInput{Value: in, Channel: channel})
	}
	slices.SortFunc(out, func(a, b rewrite.TextInput) int { return a.Channel - b.Channel })
	if len(out) == 0 || out[0].Channel != modelfile.TextIDs {
		return nil, stages.BadField("input", "none of the model's inputs takes the ids of tokens")
	}
	return out, nil
}

var textChannels = [modelfile.TextChannels]string{"ids", "attention mask", "token types"}

// readText reads a model of texts.
func readText(ctx context.Context, m *onnx.Model, p ONNXParams) (out reading, err error) {
	defer onnx.Sound(&err)
	inputs, err := textInputs(m, p)
	if err != nil {
		return out, err
	}
	if v := m.Opset(); v < 7 {
		return out, fmt.Errorf("the model uses opset %d: the oldest supported is 7", v)
	}
	if err := rewrite.TopologicalOrder(m); err != nil {
		return out, err
	}
	text := embeddingOf(m, inputs[0].Name)
	text.Attention = slices.ContainsFunc(inputs,
		func(in rewrite.TextInput) bool { return in.Channel == modelfile.TextAttention })
	in := rewrite.TextInputs(m, modelfile.TextChannels, inputs)
	length := in.Shape[3]
	switch text.Fixed = length != onnx.Free; {
	case !text.Fixed:
		length = min(judgedLength, cmp.Or(p.Length, longestText))
	case p.Length != 0 && p.Length != length:
		return out, stages.BadField("length", "length is %d, but the model takes texts of %d tokens",
			p.Length, length)
	}
	q := p
	q.Input, q.Preset, q.Size = "", "unit", picture.Size{H: 1, W: length}
	as := way{layout: modelfile.NCHW, channels: modelfile.TextChannels, text: &text}
	if out, err = readAs(ctx, m, q, as); err != nil {
		return out, err
	}
	if !text.Fixed {
		out.Spec.Width, err = longest(ctx, out.Model, p.Length)
	}
	return out, err
}

// longest returns the largest number of tokens that a model runs with: the requested one, or else at most
// longestText.
func longest(ctx context.Context, m modelfile.Model, requested int) (int, error) {
	runs := func(length int) error {
		m.Spec.Width = length
		rows := max(1, m.Spec.Batch)
		_, _, err := answer(ctx, m, sampleTexts(m.Spec, rows, 0), rows)
		return err
	}
	most := cmp.Or(requested, longestText)
	failed := runs(most)
	if failed == nil || outOfMemory(ctx, failed) {
		return most, failed
	}
	good, bad := min(judgedLength, most), most // the model was read with texts of that many tokens
	for bad-good > 1 {
		middle := (good + bad) / 2
		switch err := runs(middle); {
		case err == nil:
			good = middle
		case outOfMemory(ctx, err):
			return 0, err
		default:
			bad = middle
		}
	}
	if requested != 0 {
		return 0, stages.BadField("length", "length is %d, but the model takes texts of at most %d tokens: %w",
			requested, good, failed)
	}
	return good, nil
}

// sampleTexts returns texts for trying a model, as many as rows. Their ids are from the middle of the
// vocabulary, since special tokens come first or last.
func sampleTexts(s modelfile.Spec, rows, from int) []float32 {
	vocabulary := cmp.Or(s.Text.Vocabulary, 128)
	first, span := vocabulary/4, max(1, vocabulary/2)
	out := make([]float32, rows*s.Size())
	for k := range rows {
		text := out[k*s.Size():]
		for i := range s.Width {
			v := uint64(i+1)*0x9E3779B97F4A7C15 ^ uint64(k+from+1)*0xD1B54A32D192ED03
			v ^= v >> 29
			v *= 0xBF58476D1CE4E5B9
			text[modelfile.TextIDs*s.Width+i] = float32(first + int(v>>33)%span)
			text[modelfile.TextAttention*s.Width+i] = 1
		}
	}
	return out
}

// embeddingOf finds the value that has a vector for each token: the rows of a table that the ids choose, or
// what is made of the ids' one-hot code.
func embeddingOf(m *onnx.Model, ids string) modelfile.Text {
	out := modelfile.Text{Pad: -1, Mask: -1}
	constants := map[string][]int{}
	for _, t := range m.Proto.Graph.Initializer {
		constants[t.Name] = onnx.ShapeOf(t)
	}
	at := map[string]bool{ids: true} // values that are ids, in any form
	for _, proto := range m.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		if len(n.Output) == 0 {
			continue
		}
		switch n.OpType {
		case "Constant":
			if t := onnx.ConstantOf(n); t != nil {
				constants[n.Output[0]] = onnx.ShapeOf(t)
			}
			continue
		case "Cast", "DequantizeLinear", "Identity": // tables in other forms
			if shape := constants[n.In(0)]; shape != nil {
				constants[n.Output[0]] = shape
				continue
			}
		}
		if n.OpType == "Gather" && at[n.In(1)] && len(constants[n.In(0)]) == 2 && n.Int("axis", 0) == 0 {
			table := constants[n.In(0)]
			out.Embedding, out.Vocabulary, out.Dimension = n.Output[0], table[0], table[1]
			return out
		}
		if !slices.ContainsFunc(onnx.Taken(proto), func(v string) bool { return at[v] }) {
			continue
		}
		switch n.OpType {
		case "Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Equal", "OneHot", "Transpose",
			"Expand", "Where", "Clip", "Min", "Max", "Add", "Sub":
			at[n.Output[0]] = true
			out.Embedding = n.Output[0]
		case "MatMul":
			if table := constants[n.In(1)]; at[n.In(0)] && len(table) == 2 {
				out.Embedding, out.Vocabulary, out.Dimension = n.Output[0], table[0], table[1]
				if sum := onlyReader(m, n.Output[0]); sum.NodeProto != nil && sum.OpType == "Add" {
					// Simplification merges the two.
					if constants[sum.In(0)] != nil || constants[sum.In(1)] != nil {
						out.Embedding = sum.Output[0]
					}
				}
				return out
			}
		}
	}
	return out
}

// onlyReader returns the only node that reads a value, none if there are several.
func onlyReader(m *onnx.Model, v string) (reader onnx.Node) {
	for _, n := range m.Proto.Graph.Node {
		if !slices.Contains(onnx.Taken(n), v) {
			continue
		}
		if reader.NodeProto != nil {
			return onnx.Node{}
		}
		reader.NodeProto = n
	}
	return reader
}

// textFacts are the facts of a model of texts.
func textFacts(s modelfile.Spec, f stages.Facts) {
	f["texts"] = "1"
	f["length"] = strconv.Itoa(s.Width)
}

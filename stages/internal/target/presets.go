package target

import (
	"slices"
	"strings"
)

// A preset is an expression with a name and arguments.
type preset struct {
	name string
	// args are the names of its arguments, each with its default after "=", if there is one.
	args []string
	is   string
	doc  string
}

// presets are written in the language. Their names may have hyphens.
var presets = []preset{
	{"binary", []string{"z=only(output)"}, "frozen(sign(z)) * z",
		"of one logit, the side that the model takes: z where it is positive, −z where it is negative"},
	{"contrast", []string{"x", "i=predicted"}, "x[i] - mean(except(x, i))",
		"a class compared with the mean of the others"},
	{"detection", []string{"boxes", "scores", "row=frozen(argmax(max(scores, 1)))", "objectness=1",
		`format="xyxy"`},
		"max(iou(boxes, frozen(boxes[row]), format) * objectness * cosine(scores, frozen(scores[row])))",
		"the similarity of D-RISE to the original's detection in a row, before non-maximum suppression: " +
			"Petsiuk et al., \"Black-box Explanation of Object Detectors via Saliency Maps\", CVPR 2021, " +
			"equations 2 and 3"},
	{"finer", []string{"x", "i=predicted", "k=3", "weight=0.6"},
		"x[i] - weight * sum(x * frozen(nearest(x, i, k))) / k",
		"a class compared with the k whose scores are nearest to its own: Zhang et al., \"Finer-CAM\", " +
			"CVPR 2025"},
	{"log-odds", []string{"x", "i=predicted"}, "x[i] - logsumexp(except(x, i))",
		"log p/(1 − p) of a class's probability"},
	{"multi-label", []string{"x=output"}, "sum(x * frozen(x > 0))",
		"the logits of all classes that the model finds in the original image"},
	{"regression", []string{"x=output"}, "only(x)", "the only number that the model returns"},
	{"segmentation", []string{"class", "x=output"}, "sum(x[class] * frozen(argmax(x, 0) == class))",
		"a class's logits over the places where the original image was taken for it: Vinogradova, Dibrov " +
			"and Myers, \"Towards Interpretable Semantic Segmentation via Gradient-weighted Class " +
			"Activation Mapping\", AAAI 2020, equation 2"},
	{"similarity", []string{"x=output", "to=vectors"}, "cosine(x, to)",
		"the cosine of the model's embedding and a stored one"},
	{"zero-shot", []string{"class=frozen(argmax(cosine(output, vectors)))", "scale=100"},
		"softmax(scale * cosine(output, vectors))[class]",
		"the probability of a text among texts, by the cosine of image and text: Radford et al., " +
			"\"Learning Transferable Visual Models From Natural Language Supervision\", ICML 2021"},
}

func presetNamed(name string) *preset {
	k := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if k < 0 {
		return nil
	}
	return &presets[k]
}

// form returns how a preset is called.
func (p *preset) form() string { return p.name + "(" + strings.Join(p.args, ", ") + ")" }

// expanded replaces the presets in an expression by what they are. Errors in them stand where they are
// called.
func expanded(text string, n *node) (*node, error) {
	if n == nil {
		return nil, nil
	}
	if p := presetNamed(n.name()); p != nil && n.op != opName {
		return p.expand(text, n)
	}
	out := *n
	out.args = slices.Clone(n.args)
	for k, a := range n.args {
		var err error
		if out.args[k], err = expanded(text, a); err != nil {
			return nil, err
		}
	}
	out.named = slices.Clone(n.named)
	for k, a := range n.named {
		x, err := expanded(text, a.node)
		if err != nil {
			return nil, err
		}
		out.named[k].node = x
	}
	return &out, nil
}

// expand returns what a call of a preset is.
func (p *preset) expand(text string, called *node) (*node, error) {
	given := map[string]*node{}
	hint := "it is " + p.form()
	for k, a := range called.args {
		if k >= len(p.args) {
			return nil, errorAt(text, a.at, hint, "%s has too many arguments", p.name)
		}
		name, _, _ := strings.Cut(p.args[k], "=")
		given[name] = a
	}
	for _, a := range called.named {
		known := slices.ContainsFunc(p.args, func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return name == a.name
		})
		switch {
		case !known:
			return nil, errorAt(text, a.at, hint, "%s has no argument %s", p.name, a.name)
		case given[a.name] != nil:
			return nil, errorAt(text, a.at, "", "the argument %s of %s is given twice", a.name, p.name)
		}
		given[a.name] = a.node
	}
	bound := map[string]*node{}
	for _, arg := range p.args {
		name, otherwise, has := strings.Cut(arg, "=")
		x := given[name]
		var err error
		switch {
		case x != nil:
			x, err = expanded(text, x)
		case !has:
			err = errorAt(text, called.at, hint, "%s lacks the argument %s", p.name, name)
		default:
			x = p.part(otherwise, called.at, bound)
		}
		if err != nil {
			return nil, err
		}
		bound[name] = x
	}
	return p.part(p.is, called.at, bound), nil
}

// part returns the nodes of a part of the preset, with its arguments in place, at the place of the call.
func (p *preset) part(text string, at int, args map[string]*node) *node {
	list, err := tokens(text)
	if err != nil {
		panic(err)
	}
	root, err := (&parser{text: text, tokens: list}).expression()
	if err != nil {
		panic(err) // TestPresets parses them all
	}
	return root.replaced(at, args)
}

// replaced returns a node with words replaced by arguments, at another place.
func (n *node) replaced(at int, args map[string]*node) *node {
	if n == nil {
		return nil
	}
	if x := args[n.text]; x != nil && n.op == opWord {
		return x
	}
	out := *n
	out.at = at
	out.args = slices.Clone(n.args)
	for k, a := range n.args {
		out.args[k] = a.replaced(at, args)
	}
	return &out
}

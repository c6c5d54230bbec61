package attribute

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// The functions below declare the stages of methods. A method's file states its doc, parameters, defaults and
// mathematics; they add what methods of its kind have in common: ports, relation, device, the check of the
// target and the loading of the model.

// checked are parameters of a method that explains a class, which may conflict with the wired ports.
type checked interface {
	check(wired func(port string) bool) error
	explained(in map[string]stages.Declared) string
}

// methodParams are the parameters of a method that explains a class of a model.
type methodParams interface {
	checked
	run(ctx context.Context, e *stages.Env, n *program.Net) error // makes the maps of all items
}

// method declares a method that explains a class of a model.
func method[P methodParams](d stages.Def[P]) stages.Stage {
	d.Run = func(ctx context.Context, p P, e *stages.Env) error { return loaded(ctx, e, p.run) }
	return explaining(d)
}

// backwardMethod declares a method that makes its map of the results of backward passes. They may share a
// forward pass with those of other methods.
func backwardMethod[P backwardParams](d stages.Def[P]) stages.Stage {
	d.Shared, d.Passes = &groupedBackward, cmp.Or(d.Passes, stages.Passes{Forward: "1", Backward: "1"})
	return explaining(d)
}

// attentionMethod declares a method that makes its map of a transformer's attention, given a class. It may
// share a forward pass with others.
func attentionMethod[P interface {
	checked
	attentionParams
}](d stages.Def[P]) stages.Stage {
	d.Shared = &groupedAttention
	return explaining(d)
}

// plainAttentionMethod declares a method of attention itself, which is the same for all classes.
func plainAttentionMethod[P attentionParams](d stages.Def[P]) stages.Stage {
	d.Shared = &groupedAttention
	return classFree(d)
}

// propagationMethod declares a method that propagates relevance backwards.
func propagationMethod[P propagationParams](d stages.Def[P]) stages.Stage {
	d.Shared, d.Passes = &groupedBackward, cmp.Or(d.Passes, stages.Passes{Forward: "1", Backward: "1"})
	return explaining(d)
}

// conservingMethod declares a method that propagates relevance by rules that conserve its sum, except for
// biases and stabilisers. Its port conservation has the share that arrives.
func conservingMethod[P interface {
	propagationParams
	declares() stages.Declared
}](d stages.Def[P]) stages.Stage {
	d.Declares = func(p P, _ map[string]stages.Declared) stages.Declared { return p.declares() }
	d.Outputs = append(outputs(), stages.Port{
		Name: "conservation", Type: stages.Scores,
		Doc: "the sum of the relevance that arrives, as a share of the initial relevance; undefined where " +
			"that sums to 0",
	})
	d.Facts = func(P, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.None, Low: math.Inf(-1), High: math.Inf(1),
			Tolerance: 1e-3}
		return map[string]stages.Facts{"conservation": m.Facts(nil)}, nil
	}
	return propagationMethod(d)
}

// comparisonMethod declares a method that compares images with baselines: the values of a map sum to the
// difference of the two responses, and its port completeness has the deviation from that. what names the
// baseline; tolerance is the port's for an item.
func comparisonMethod[P interface {
	methodParams
	unit() string // of the explained output
}](what string, tolerance float64, d stages.Def[P]) stages.Stage {
	d.Inputs = append(inputs(), stages.Port{
		Name: "baselines", Type: stages.Images, Optional: true, Texts: true,
		Doc: "the image that each image is compared with, of the same size; by default that of the " +
			"parameter baseline",
	})
	return completeMethod(what, tolerance, d)
}

// completeMethod declares a method like [comparisonMethod], whatever its images are compared with.
func completeMethod[P interface {
	methodParams
	unit() string // of the explained output
}](what string, tolerance float64, d stages.Def[P]) stages.Stage {
	d.Outputs = append(outputs(), stages.Port{
		Name: "completeness", Type: stages.Scores,
		Doc: "the sum of the attributions minus the difference of the outputs for image and " + what,
	})
	d.Facts = func(p P, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{
			Unit: p.unit(), Direction: stages.None, Low: math.Inf(-1), High: math.Inf(1),
			Tolerance: 1e-3, ItemTolerance: tolerance,
		}
		return map[string]stages.Facts{"completeness": m.Facts(nil)}, nil
	}
	return method(d)
}

// explaining completes the declaration of a method that explains a class.
func explaining[P checked](d stages.Def[P]) stages.Stage {
	if d.Inputs == nil {
		d.Inputs = inputs()
	}
	d.Check = func(p P, wired func(string) bool) error {
		if err := p.check(wired); err != nil {
			return err
		}
		return checkRules(p, wired)
	}
	withTarget(&d)
	return itemwise(d)
}

// classFreeMethod declares a method whose map is the same for all classes. It has the ports of methods that
// explain one, so that both can be on one axis.
func classFreeMethod[P interface {
	run(ctx context.Context, e *stages.Env, n *program.Net) error
}](d stages.Def[P]) stages.Stage {
	d.Run = func(ctx context.Context, p P, e *stages.Env) error { return loaded(ctx, e, p.run) }
	return classFree(d)
}

// classFree completes the declaration of a method whose map is the same for all classes.
func classFree[P any](d stages.Def[P]) stages.Stage {
	d.Inputs = []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the explained model, a vision transformer"},
		{Name: "images", Type: stages.Images, Texts: true,
			Doc: "the explained images, of the model's size, or texts"},
		{Name: "targets", Type: stages.Targets, Doc: ignoredTargets, Optional: true},
		{Name: "labels", Type: stages.Labels, Doc: "ignored", Optional: true},
	}
	return itemwise(d)
}

// ignoredTargets describes the targets of methods whose map is the same for all classes.
const ignoredTargets = "ignored: the map is the same for all classes"

// ClassFree reports whether the map of a method is the same for all classes.
func ClassFree(s *stages.Stage) bool {
	p := s.Input("targets")
	return p == nil || p.Doc == ignoredTargets
}

// itemwise declares a stage that runs a model and makes one map per image.
func itemwise[P any](d stages.Def[P]) stages.Stage {
	d.Relation, d.Device = stages.Each, true
	if d.Outputs == nil {
		d.Outputs = outputs()
	}
	return program.Stage(d)
}

// modelFreeMethod declares a method that doesn't read the model. It has the ports of methods that do, so that
// both can be on one axis.
func modelFreeMethod[P any](d stages.Def[P]) stages.Stage {
	d.Relation, d.Outputs = stages.Each, outputs()
	d.Inputs = []stages.Port{
		{Name: "images", Type: stages.Images, Texts: true, Doc: "images of the maps' size, or texts"},
		{Name: "model", Type: stages.Model, Doc: "ignored", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "ignored", Optional: true},
		{Name: "labels", Type: stages.Labels, Doc: "ignored", Optional: true},
	}
	return stages.New(d)
}

// mapImages puts the map that newMap returns for each item, given the shape of its image.
func mapImages(ctx context.Context, e *stages.Env,
	newMap func(i, channels, height, width int) (stages.Tensor, error)) error {
	for i := range e.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t, err := stages.DecodeTensor(e.In("images", i))
		if err == nil && modelfile.IsTokens(t) {
			t.Shape = []int{1, 1, t.Shape[1]}
		}
		if err == nil && len(t.Shape) != 3 {
			err = fmt.Errorf("an image has shape [channels, height, width], not %v", t.Shape)
		}
		var m stages.Tensor
		if err == nil {
			m, err = newMap(i, t.Shape[0], t.Shape[1], t.Shape[2])
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		putMap(e, i, m)
	}
	return nil
}

// loaded calls run with the model on the port model.
func loaded(ctx context.Context, e *stages.Env,
	run func(context.Context, *stages.Env, *program.Net) error) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	if p := e.Stage.Input("images"); n.Text != nil && !p.Texts {
		return fmt.Errorf("%s takes no texts: %s", e.Stage.Name, p.NotTexts)
	}
	return run(ctx, e, n)
}

// inputs returns the ports of methods that explain a class of a model.
func inputs() []stages.Port {
	return []stages.Port{
		program.ModelPort("the explained model"),
		{Name: "images", Type: stages.Images, Texts: true,
			Doc: "the explained images, of the model's size, or texts"},
		{Name: "targets", Type: stages.Targets, Doc: "the explained classes; by default the predictions " +
			"for the original images", Optional: true, Else: "model/predict"},
		{Name: "labels", Type: stages.Labels, Doc: "explained if target is label", Optional: true},
	}
}

// imageInputs returns the ports of methods that take no texts, and why.
func imageInputs(why string) []stages.Port {
	ports := inputs()
	for i := range ports {
		if ports[i].Texts {
			ports[i].Texts, ports[i].NotTexts = false, why
			ports[i].Doc = strings.TrimSuffix(ports[i].Doc, ", or texts")
		}
	}
	return ports
}

// outputs returns the port of the maps.
func outputs() []stages.Port {
	return []stages.Port{{Name: "maps", Type: stages.Maps,
		Doc: "one map per image, of the image's size unless a parameter sets another"}}
}

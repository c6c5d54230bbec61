package function

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A kind is what a function's decorator makes of it.
type kind struct {
	of     string      // the port of whose item a result is, which every function of the kind reads
	output stages.Port // of the results
	types  []stages.DType
	shapes func(of []int) [][]int // that a result may have, for the shape of that item
}

var kinds = map[string]kind{
	"metric": {
		of:     "maps",
		output: stages.Port{Name: "scores", Type: stages.Scores, Doc: "the scores"},
		types:  []stages.DType{stages.F64},
		shapes: func([]int) [][]int { return [][]int{{1}} },
	},
	"maps": {
		of:     "maps",
		output: stages.Port{Name: "maps", Type: stages.Maps, Doc: "the new maps"},
		types:  []stages.DType{stages.F32, stages.F64},
		shapes: func(of []int) [][]int { return [][]int{of, plane(of)} },
	},
	"attribute": {
		of: "images",
		output: stages.Port{Name: "maps", Type: stages.Maps,
			Doc: "one map per image, of the image's size"},
		types: []stages.DType{stages.F32, stages.F64},
		shapes: func(of []int) [][]int {
			p := plane(of)
			return [][]int{p, append([]int{1}, p...), append([]int{3}, p...)}
		},
	},
	"segments": {
		of: "images",
		output: stages.Port{Name: "segments", Type: stages.Segments,
			Doc: "u32 [H,W], the number of each pixel's segment"},
		types:  []stages.DType{stages.U32},
		shapes: func(of []int) [][]int { return [][]int{plane(of)} },
	},
}

// plane returns height and width of the shape of an image or a map.
func plane(shape []int) []int { return shape[max(len(shape)-2, 0):] }

// fits returns the type of a result, or an error unless it has the type and shape of its kind, before its
// bytes are read.
func (k kind) fits(a array, of []int) (stages.DType, error) {
	for _, d := range k.types {
		if dtypes[d] != a.DType {
			continue
		}
		for _, shape := range k.shapes(of) {
			if slices.Equal(shape, a.Shape) {
				return d, nil
			}
		}
	}
	return 0, fmt.Errorf("the function returned %s of the shape %v, for %s of the shape %v", a.DType, a.Shape,
		k.of, of)
}

// ports are the inputs of functions, by the names of their arguments.
var ports = []struct {
	argument string
	port     stages.Port
}{
	{"map", stages.Port{Name: "maps", Type: stages.Maps, Doc: "the maps"}},
	{"image", stages.Port{Name: "images", Type: stages.Images, Doc: "the images"}},
	{"mask", stages.Port{Name: "masks", Type: stages.Masks, Doc: "masks of the objects"}},
	{"segments", stages.Port{Name: "segments", Type: stages.Segments, Doc: "segments of the images"}},
	{"label", stages.Port{Name: "labels", Type: stages.Labels, Doc: "the classes of the images"}},
	{"target", stages.Port{Name: "targets", Type: stages.Targets, Doc: "the explained classes"}},
	{"model", stages.Port{Name: "model", Type: stages.Model, Doc: "the explained model"}},
}

// argumentOf returns the argument of a function that reads a port.
func argumentOf(port string) string {
	for _, in := range ports {
		if in.port.Name == port {
			return in.argument
		}
	}
	return ""
}

// reads reports whether a function has an argument.
func (f *function) reads(argument string) bool { return slices.Contains(f.Inputs, argument) }

// inputs returns the ports of a function: those that it reads. A method has those of all methods, so that
// they can be on one axis, and explains the predicted class by default.
func (f *function) inputs() (list []stages.Port) {
	for _, in := range ports {
		p, common := in.port, f.Kind == "attribute" &&
			(in.argument == "model" || in.argument == "target" || in.argument == "label")
		switch {
		case common && !f.reads(in.argument):
			p.Optional, p.Doc = true, "ignored"
		case common && in.argument == "target":
			p.Else, p.Doc = "model/predict", "the explained classes; by default the predictions for the "+
				"original images"
		case !f.reads(in.argument):
			continue
		}
		list = append(list, p)
	}
	return list
}

// declares returns the explained class of a method, if it isn't on the port targets.
func declares(_ any, in map[string]stages.Declared) stages.Declared {
	if _, wired := in["targets"]; wired {
		return nil
	}
	return stages.Declared{"target": program.PredictedClass}
}

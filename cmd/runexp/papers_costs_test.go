package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// What a cost at the paper's scale is computed of. A net's multiply-adds are those that runexp inspect tells
// of the files of experiments/papers/export.py, with random weights; those of nets of the same form are taken
// for others. A processor's core does 100 GFLOP/s: ResNet-50, VGG-16 and ViT-B/16 had 153, 178 and 82 on one
// with AVX-512, in 112 forward passes. An H100 is taken at 20 TFLOP/s, a third of what it does in single
// precision at most; that isn't measured. A backward pass costs as much as a forward pass.
const (
	coreFLOPS = 100e9
	h100FLOPS = 20e12
)

// multiplyAdds of a forward pass, in billions, by parts of the files' names: the first that fits.
var multiplyAdds = []struct {
	part     string
	billions float64
}{
	{"vgg11", 7.61}, {"vgg16", 15.5}, {"vgg19", 19.6}, {"vgg", 19.6}, {"resnet18", 1.81}, {"resnet50", 4.09},
	{"r101", 7.8}, {"resnet101", 7.8}, {"resnet", 1.81}, {"384", 55.5}, {"vit-base-32", 4.4},
	{"vit-b-32", 4.4}, {"vit", 17.6}, {"inception", 12.3}, {"efficientnet", 0.66}, {"densenet", 2.9},
}

// setSizes are the numbers of images and classes of data sets, by parts of their paths: ImageNet's validation
// images, VOC's lists, RESISC45 and a fifth of it, the tests of Food-101 and of Places365.
var setSizes = []struct {
	part            string
	images, classes int
}{
	{"imagenet", 50000, 1000}, {"VOC", 5823, 20}, {"RESISC45/test", 6300, 45}, {"resisc45", 31500, 45},
	{"food", 25250, 101}, {"places", 36500, 365}, {"cifar", 10000, 10},
}

// A costed cell is what a cell of a plan would take.
type costed struct {
	items         int
	size, channel float64 // pixels of an image's side, and channels of maps
	scale         float64 // how often a pass is as large as one of an image
	flops         float64
	passes, bytes float64
}

var side = regexp.MustCompile(`\d+`)

// settled returns the parameters of a stage that are numbers, lengths of lists or sizes, and the texts.
func settled(params any) (n map[string]int, texts map[string]string) {
	n, texts = map[string]int{}, map[string]string{}
	for _, f := range stages.Fields(params) {
		switch v := reflect.ValueOf(params).Elem().FieldByIndex(f.Index); {
		case v.CanInt():
			n[f.Name] = int(v.Int())
		case v.Kind() == reflect.Slice:
			n[f.Name] = v.Len()
		default:
			texts[f.Name] = fmt.Sprint(v.Interface())
			if side := side.FindString(texts[f.Name]); side != "" {
				n[f.Name], _ = strconv.Atoi(side) // of a square
			}
		}
	}
	return n, texts
}

// costsOf adds up what a plan takes.
func costsOf(t *testing.T, p *plan.Plan) (total costed) {
	t.Helper()
	cells := make([]costed, len(p.Cells))
	same, first := make([]int, len(p.Cells)), map[string]int{} // equal cells are computed once
	for i, c := range p.Cells {
		definition := fmt.Sprintf("%s %+v", c.Stage.Name, reflect.ValueOf(c.Params).Elem().Interface())
		at := &cells[i]
		n, texts := settled(c.Params)
		at.items, at.scale, at.channel = -1, 1, 1
		in := map[string]stages.Amount{}
		for k, input := range c.Inputs {
			for _, e := range input.Edges {
				from := cells[e.From.Index]
				definition += fmt.Sprint(" ", k, same[e.From.Index], e.Port, e.Coord)
				at.size, at.scale = max(at.size, from.size), max(at.scale, from.scale)
				at.channel = max(at.channel, from.channel)
				if c.Stage.Inputs[k].Type.Items {
					if at.items < 0 || from.items < at.items {
						at.items = from.items
					}
					in[c.Stage.Inputs[k].Name] = stages.Amount{Items: at.items}
				} else {
					at.flops = max(at.flops, from.flops)
				}
			}
		}
		place := texts["path"]
		switch c.Stage.Name {
		case "model/onnx":
			for _, net := range multiplyAdds {
				if strings.Contains(place, net.part) {
					at.flops = 2e9 * net.billions
					break
				}
			}
			if strings.Contains(place, "quickstart/") || strings.Contains(place, "toy/") {
				at.flops = 2e7
			}
		case "dataset/shapes":
			at.items, at.size = n["count"], float64(max(n["size"], 64))
		case "dataset/folder", "dataset/voc":
			at.items, at.size = 0, 224
			for _, set := range setSizes {
				if strings.Contains(strings.ToLower(place), strings.ToLower(set.part)) {
					at.items = set.images
					if n["per_class"] > 0 {
						at.items = min(at.items, n["per_class"]*set.classes)
					}
					break
				}
			}
			for _, limit := range []string{"count", "sample"} {
				if n[limit] > 0 {
					at.items = min(at.items, n[limit])
				}
			}
			for _, size := range []string{"crop", "size"} {
				if n[size] > 0 {
					at.size = float64(n[size])
					break
				}
			}
		case "mosaic/gae":
			at.items /= 4
			if n["count"] > 0 {
				at.items = min(at.items, n["count"])
			}
		case "mosaic/grid":
			at.items = c.Stage.HooksOf(c.Params).Most(in)
			at.scale, at.size = float64(n["n"]*n["n"]), at.size*float64(n["n"])
		case "mosaic/focus":
			at.items, at.scale, at.size = n["count"]*1000, 4, 2*at.size
		case "dataset/select":
			at.items = c.Stage.HooksOf(c.Params).Most(in)
		}
		if texts["reduce"] == "none" {
			at.channel = 3
		}
		n["channels"], n["rivals"] = 512, n["classes"]
		places := at.size
		if layer := texts["layer"]; layer != "" && layer != "input" {
			places /= 16 // of an inner layer
		}
		n["windows"] = int(math.Pow(math.Ceil(places/float64(max(n["stride"], 1))), 2))
		n["points"] = n["steps"] + 1
		if n["shares"] > 0 {
			n["points"] = n["shares"] + 1
		} else if n["steps"] == 0 {
			n["points"] = int(at.size) + 1
		}
		forward, _ := stagetest.Passes(t, c.Stage.Passes.Forward, n)
		backward, _ := stagetest.Passes(t, c.Stage.Passes.Backward, n)
		at.passes = float64(max(at.items, 0)) * float64(forward+backward)
		if c.Step.Keep && c.Stage.Relation != stages.Whole {
			for _, port := range c.Stage.Outputs {
				pixels := at.size * at.size
				each := map[string]float64{"images": 3 * pixels, "maps": 4 * at.channel * pixels,
					"masks": pixels, "ranks": 4 * pixels, "removals": 3 * pixels, "thumbnails": 96 * 96,
					"curves": 16 * float64(n["points"])}[port.Type.Name]
				at.bytes += each * float64(max(at.items, 0))
			}
		}
		if _, known := first[definition]; !known {
			first[definition] = i
		}
		if same[i] = first[definition]; same[i] != i {
			continue
		}
		total.passes, total.bytes = total.passes+at.passes, total.bytes+at.bytes
		total.flops += at.passes * at.scale * at.flops
	}
	return total
}

// about writes a number with two digits, and a unit of a thousand.
func about(x float64, units []string) string {
	i := 0
	for i+1 < len(units) && x >= 995 {
		x, i = x/1000, i+1
	}
	text := strconv.FormatFloat(x, 'g', 2, 64)
	if x >= 100 {
		text = fmt.Sprint(math.Round(x/10) * 10)
	}
	return text + units[i]
}

// costLine is the line in the head of an experiment.
func costLine(c costed) string {
	hours := func(flops float64) string {
		h := c.flops / flops / 3600
		switch {
		case h <= 1.0/60:
			return "a minute"
		case h < 1:
			return fmt.Sprintf("%.0f minutes", math.Ceil(60*h))
		case h < 10:
			return fmt.Sprintf("%.1f hours", h)
		}
		return about(h, []string{" hours", " thousand hours", " million hours"})
	}
	return fmt.Sprintf("# At the paper's scale: about %s passes, %s of store, %s on one core and, computed, "+
		"%s on one H100.\n", about(c.passes, []string{"", " thousand", " million", " billion"}),
		about(c.bytes, []string{" bytes", " kB", " MB", " GB", " TB"}), hours(coreFLOPS), hours(h100FLOPS))
}

var listCosts = flag.Bool("costs", false, "print what the papers cost")

var (
	costMark     = regexp.MustCompile(`(?m)^# At the paper's scale: .*\n`)
	scaleCommand = regexp.MustCompile(`(?m)^# Paper scale: .*(\n#   .*)*\n`)
)

// TestPapersCosts: the head of each experiment tells what its passes cost at the paper's scale, and what its
// items take in the store. It is computed of the plan that the command makes; with -update it is written.
func TestPapersCosts(t *testing.T) {
	if inUndetected(t) {
		return
	}
	for _, name := range papers {
		t.Run(name, func(t *testing.T) {
			file := "../../experiments/papers/" + name + ".yaml"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := loadPaper(t, file, headCommand(t, text, "Paper scale", name))
			cost := costsOf(t, p)
			if cost.passes == 0 { // a toy's
				return
			}
			line := costLine(cost)
			if *listCosts {
				fmt.Printf("%s: %s", name, line[2:])
			}
			was := costMark.Find(text)
			if string(was) == line {
				return
			} else if !*update {
				t.Fatalf("its head has %q, and the cost is %q: run make generate", was, line)
			}
			text = costMark.ReplaceAll(text, nil)
			at := scaleCommand.FindIndex(text)
			text = slices.Concat(text[:at[1]], []byte(line), text[at[1]:])
			if err := os.WriteFile(file, text, 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
}

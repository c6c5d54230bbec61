package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/picture"
)

// A Feed is a hypothesis about how pixels become a model's input, in the parameters of [ONNX].
type Feed struct {
	Preset string
	Order  string // "" for the preset's
	Size   picture.Size

	// Declared is the range that the file states if no preset has it; nil otherwise.
	Declared *modelfile.Preset

	Prior    float64 // its probability before the model is run; all add up to 1
	Unlikely string  // why the prior is small, in words that continue the feed's name; "" if it isn't
}

func (f Feed) String() string {
	s := f.Preset
	if f.Declared != nil {
		s = "the file's range"
	}
	if f.Order != "" {
		s += " with order: " + f.Order
	}
	return s
}

// order returns the channel order, the preset's if none is set.
func (f Feed) order() string { return cmp.Or(f.Order, presetOrder(f.Preset)) }

// params returns the parameters that set the feed.
func (f Feed) params() ONNXParams {
	p := ONNXParams{Preset: f.Preset, Order: "auto", Size: f.Size}
	if f.Order != "" {
		p.Order = f.Order
	}
	if f.Declared != nil {
		p.Scale, p.Mean, p.Std = f.Declared.Scale, f.Declared.Mean, f.Declared.Std
	}
	return p
}

// smallNet is the longest side of the images of nets that are trained on small pictures.
const smallNet = 64

// usual is the frequency with which published nets are fed by a preset: in general, nets of small images,
// and vision transformers of larger ones, which as ViT, BEiT and SigLIP take half, or as DeiT, DINO and MAE
// imagenet.
var usual = map[string]struct {
	any, small, tokens float64
	unlikely           string
}{
	"imagenet":          {0.35, 0.2, 0.4, ""},
	"half":              {0.2, 0.15, 0.4, ""},
	"unit":              {0.2, 0.2, 0.08, ""},
	"raw":               {0.15, 0.15, 0.05, ""},
	"caffe-bgr":         {0.04, 0.01, 0.005, ""},
	"cifar10":           {0.01, 0.15, 0.01, "is for 32×32 nets"},
	"cifar10-per-image": {0.005, 0.05, 0.005, "is for 32×32 nets"},
	"resisc45":          {0.005, 0.005, 0.005, "is for nets of aerial photographs"},
}

// swapped is how often a net has the other channel order than its preset's.
const swapped = 0.1

// A statement of the file outweighs the usual frequencies, but not the model's predictions.
const (
	contradicted = 50.0  // times less likely
	hinted       = 10.0  // times as likely, if the model does arithmetic on its input
	quantised    = 100.0 // times as likely, if bytes stand for a range
)

// Feeds returns all hypotheses about the feeding of an inspected model. side is the side of the images, if
// all are squares of one size, or 0; runs reports whether the model runs on squares of a size.
func (x *Inspection) Feeds(side int, runs func(side int) bool) []Feed {
	var feeds []Feed
	total := 0.0
	for _, size := range x.sizes(side, runs) {
		for _, f := range x.ranges() {
			f.Size, f.Prior = size.size, f.Prior*size.prior
			total += f.Prior
			feeds = append(feeds, f)
		}
	}
	for i := range feeds {
		feeds[i].Prior /= total
	}
	return feeds
}

// ranges returns the hypotheses of range and channel order.
func (x *Inspection) ranges() (feeds []Feed) {
	small := x.Feed.Height > 0 && max(x.Feed.Height, x.Feed.Width) <= smallNet
	for _, p := range modelfile.Presets() {
		u := usual[p.Name]
		f := Feed{Preset: p.Name, Prior: u.any, Unlikely: u.unlikely}
		switch {
		case small:
			f.Prior = u.small
			if f.Prior > u.any {
				f.Unlikely = ""
			}
		case x.tokens:
			f.Prior = u.tokens
			if f.Prior < u.any {
				f.Unlikely = cmp.Or(f.Unlikely, "is rare for vision transformers")
			}
		}
		feeds = append(feeds, f)
	}
	feeds = x.weighRanges(feeds)
	if x.Feed.Channels == 1 {
		return slices.DeleteFunc(feeds, func(f Feed) bool { return f.Preset == "caffe-bgr" })
	}
	for _, f := range slices.Clone(feeds) {
		f.Order, f.Unlikely = modelfile.BGR, "has blue first, as few nets do outside Caffe and OpenCV"
		if presetOrder(f.Preset) == modelfile.BGR {
			f.Order, f.Unlikely = modelfile.RGB, "has red first, unlike Caffe's nets"
		}
		f.Prior *= swapped
		feeds = append(feeds, f)
	}
	if order := x.Declared.Order; order != "" {
		for i, f := range feeds {
			if f.order() == order {
				feeds[i].Unlikely = ""
			} else {
				feeds[i].Prior, feeds[i].Unlikely = f.Prior/contradicted, "contradicts what the file says"
			}
		}
	}
	return feeds
}

// weighRanges weighs ranges by the file's statements and operators.
func (x *Inspection) weighRanges(feeds []Feed) []Feed {
	d, nearest, times := x.Declared, "raw", hinted
	switch {
	case d.Scale != 0:
		i := slices.IndexFunc(feeds, func(f Feed) bool {
			p, _ := modelfile.PresetNamed(f.Preset)
			return d.feedsAs(p)
		})
		for k := range feeds {
			if k != i {
				feeds[k].Prior, feeds[k].Unlikely = feeds[k].Prior/contradicted,
					"contradicts what the file says"
			}
		}
		if i < 0 {
			said := modelfile.Preset{Order: modelfile.RGB, Scale: d.Scale, Mean: d.Mean, Std: d.Std}
			return append(feeds, Feed{Preset: "raw", Declared: &said, Prior: 1})
		}
		feeds[i].Prior, feeds[i].Unlikely = 1, ""
		return feeds
	case x.Range != nil:
		nearest, times = NearestPreset(x.Range[0], x.Range[1]), quantised
	case len(x.Leading) == 0:
		return feeds
	}
	for i := range feeds {
		if feeds[i].Preset == nearest {
			feeds[i].Prior, feeds[i].Unlikely = feeds[i].Prior*times, ""
		}
	}
	return feeds
}

func presetOrder(name string) string {
	p, _ := modelfile.PresetNamed(name)
	return p.Order
}

// A sizePrior is a size that a model may have been trained with.
type sizePrior struct {
	size  picture.Size
	prior float64
}

// sizes returns the hypotheses about the size: the file's, or, if it leaves the size open, the images' and
// the most usual ones on which the model runs.
func (x *Inspection) sizes(side int, runs func(side int) bool) (list []sizePrior) {
	list = []sizePrior{{picture.Size{H: x.Feed.Height, W: x.Feed.Width}, 0.5}}
	if !x.OpenHeight || !x.OpenWidth {
		return list
	}
	for _, s := range []struct {
		side  int
		prior float64
	}{{side, 2}, {224, 0.5}, {32, 0.3}, {64, 0.1}} {
		size := picture.Square(s.side)
		i := slices.IndexFunc(list, func(p sizePrior) bool { return p.size == size })
		switch {
		case i >= 0:
			list[i].prior += s.prior
		case s.side > 0 && runs(s.side):
			list = append(list, sizePrior{size, s.prior})
		}
	}
	return list
}

// Lines returns the lines of parameters that set the feed, without the size.
func (f Feed) Lines() []string {
	lines := []string{"preset: " + f.Preset}
	if f.Order != "" {
		lines = append(lines, "order: "+f.Order)
	}
	if d := f.Declared; d != nil {
		lines = append(lines, fmt.Sprintf("scale: %v", d.Scale), "mean: "+listed(d.Mean),
			"std: "+listed(d.Std))
	}
	return lines
}

package attribute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// Layers name the layer of a method's map, or several whose maps are joined, "[middle, final]".
type Layers string

// List returns the names.
func (l Layers) List() []string {
	inner, ok := strings.CutPrefix(string(l), "[")
	if ok {
		inner, ok = strings.CutSuffix(inner, "]")
	}
	if !ok {
		return []string{string(l)}
	}
	names := strings.Split(inner, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return names
}

// MarshalText writes a name, or a list.
func (l Layers) MarshalText() ([]byte, error) { return []byte(l), nil }

// UnmarshalText reads a name, or a list of names.
func (l *Layers) UnmarshalText(text []byte) error {
	names := Layers(text).List()
	for i, name := range names {
		switch {
		case len(names) > 1 && name == "":
			return errors.New("one of the layers has no name")
		case slices.Contains(names[:i], name):
			return fmt.Errorf("layer %s is named twice", name)
		}
	}
	if *l = Layers(names[0]); len(names) > 1 {
		*l = Layers("[" + strings.Join(names, ", ") + "]")
	}
	return nil
}

// Joined are the parameters of methods that make a map of each of several layers, and one of them all.
type Joined struct {
	Join  string `yaml:"join" key:"added" doc:"of several layers' maps: their mean, maximum or product at the image's size" choices:"mean|max|product"`
	Scale string `yaml:"scale" key:"added" doc:"what is done to each map before it is enlarged and joined: divided by its largest magnitude, or stretched to [0,1]" choices:"maximum|range"`
}

func joined() Joined { return Joined{"mean", "maximum"} }

// at returns the parameters with a layer alone.
func (p Tapped) at(layer string) Tapped {
	p.Layer = Layers(layer)
	return p
}

// several reports whether there is more than one layer.
func (p Tapped) several() bool { return len(p.Layer.List()) > 1 }

// check refuses layers whose maps can't be joined.
func (j Joined) checkLayers(p Tapped, signed bool) error {
	switch {
	case !p.several():
		return nil
	case slices.Contains(p.Layer.List(), "input"):
		return stages.BadField("layer", "layer input: maps of inner layers are joined")
	case p.Size == "layer":
		return stages.BadField("size", "size layer: the layers' maps are joined at the image's size")
	case signed && j.Join == "product":
		return stages.BadField("join", "join product: of maps with two signs two negative values would make "+
			"a positive one; relu: true keeps what is positive")
	}
	return nil
}

// A layerMap is the map of a layer, at its size.
type layerMap struct {
	values []float64
	at     planes
}

// putJoined puts the map of item i, given those of the layers.
func (p Tapped) putJoined(e *stages.Env, i int, n *program.Net, maps []layerMap, j Joined, how string) {
	if len(maps) == 1 {
		p.putPlane(e, i, n, p.flat(maps[0].values, len(maps[0].values)), maps[0].at, how)
		return
	}
	size := planes{height: n.Height, width: n.Width}
	if n.Text != nil {
		size = maps[0].at
	}
	var large [][]float64
	for _, m := range maps {
		j.scale(m.values)
		large = append(large, resized(m.values, m.at.height, m.at.width, size.height, size.width, how))
	}
	all := j.join(large)
	p.putPlane(e, i, n, p.flat(all, len(all)), size, how)
}

// scale scales a layer's map as the parameter says; a map without a range stays.
func (j Joined) scale(values []float64) {
	least, most := 0.0, 0.0
	switch j.Scale {
	case "none":
		return
	case "range":
		least, most = slices.Min(values), slices.Max(values)
	default:
		for _, v := range values {
			most = max(most, math.Abs(v))
		}
	}
	stretch(values, least, most)
}

// stretch maps least to 0 and most to 1, unless they are equal.
func stretch(values []float64, least, most float64) {
	if most == least {
		return
	}
	for k := range values {
		values[k] = (values[k] - least) / (most - least)
	}
}

// join joins maps of one size.
func (j Joined) join(maps [][]float64) []float64 {
	out := slices.Clone(maps[0])
	for _, m := range maps[1:] {
		for k, v := range m {
			switch j.Join {
			case "product":
				out[k] *= v
			case "max":
				out[k] = max(out[k], v)
			default:
				out[k] += v
			}
		}
	}
	if j.Join == "mean" {
		for k := range out {
			out[k] /= float64(len(maps))
		}
	}
	return out
}

// emitJoined emits the map, given those of the layers, [batch, h, w].
func (m *emission) emitJoined(p Tapped, maps []standalone.Numbers, j Joined, how string) standalone.Numbers {
	if len(maps) == 1 {
		return m.putPlane(p, single(p.Reduce, maps[0]), how)
	}
	var out standalone.Numbers
	for k, v := range maps {
		switch v = m.resized(m.scaled(v, j), how); {
		case k == 0:
			out = v
		case j.Join == "product":
			out = out.Times(v)
		case j.Join == "max":
			out = out.Plus(v.Minus(out).Relu())
		default:
			out = out.Plus(v)
		}
	}
	if j.Join == "mean" {
		out = out.Over(m.Number(float64(len(maps))))
	}
	return m.putPlane(p, single(p.Reduce, out), how)
}

// scaled emits a layer's map as [Joined.scale] scales it.
func (m *emission) scaled(v standalone.Numbers, j Joined) standalone.Numbers {
	if j.Scale != "range" {
		most := v.Abs().KeepMax(1, 2)
		return v.Over(most.Plus(most.IsZero()))
	}
	return m.stretched(v, 0)
}

// stretched emits maps less their minimum, divided by their range plus a guard. A map without a range stays.
func (m *emission) stretched(v standalone.Numbers, guard float64) standalone.Numbers {
	least := v.Times(m.Number(-1)).KeepMax(1, 2).Times(m.Number(-1))
	span := v.KeepMax(1, 2).Minus(least).Plus(m.Number(guard))
	flat := span.IsZero()
	return v.Minus(least.Times(m.Number(1).Minus(flat))).Over(span.Plus(flat))
}

// eachLayer calls make with each layer and every item, in this order, and puts what it returns, joined.
func (p Tapped) eachLayer(ctx context.Context, e *stages.Env, n *program.Net, j Joined, how string,
	run func(ctx context.Context, p Tapped, put func(item int, m layerMap)) error) error {
	layers := p.Layer.List()
	maps := map[int][]layerMap{}
	for _, layer := range layers {
		err := run(ctx, p.at(layer), func(item int, m layerMap) {
			if maps[item] = append(maps[item], m); len(maps[item]) == len(layers) {
				p.putJoined(e, item, n, maps[item], j, how)
				delete(maps, item)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remarkEach returns the first remark about a layer.
func (p Tapped) remarkEach(g *onnx.Graph, remark func(Tapped) string) string {
	for _, layer := range p.Layer.List() {
		if why := remark(p.at(layer)); why != "" {
			return why
		}
	}
	return ""
}

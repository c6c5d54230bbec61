package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// odd returns the stages that use the rarer parts of the contract.
func (l *lab) odd() []stages.Stage {
	return []stages.Stage{l.other(), l.mix(), l.pairs(), l.tag(), l.vote(), l.value(), l.sourced(), l.stray(),
		l.pair(), l.hostMix(), l.show(), l.remote(), l.remoteAll()}
}

type noParams struct{}

// other makes an image of every item in l.others.
func (l *lab) other() stages.Stage {
	s := l.source()
	s.Name = "lab/other"
	s.Sources = func(any, []string) ([]stages.Source, error) { return sourcesOf(l.others), nil }
	return s
}

func sourcesOf(items []string) (out []stages.Source) {
	for _, it := range items {
		id, content, _ := strings.Cut(it, "=")
		out = append(out, stages.Source{ID: id, Note: content})
	}
	return out
}

type mixParams struct {
	Fail string  `yaml:"fail" doc:"where" choices:"facts|run|warn|"`
	Plus float64 `yaml:"plus" doc:"offset"`
}

// mix adds maps, on a device.
func (l *lab) mix() stages.Stage {
	return stages.New(stages.Def[mixParams]{
		Name: "lab/mix", Doc: "sums of maps", Version: 1, Device: true,
		Inputs: []stages.Port{{Name: "maps", Type: stages.Maps},
			{Name: "more", Type: stages.Maps, Optional: true}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Facts: func(p mixParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
			if p.Fail == "facts" {
				return nil, fmt.Errorf("no facts for you")
			}
			return nil, nil
		},
		Run: func(_ context.Context, p mixParams, e *stages.Env) error {
			l.count("mix calls", 1)
			if p.Fail == "run" {
				return fmt.Errorf("told to fail")
			}
			for i := range e.Len() {
				x := first(e.In("maps", i)) + p.Plus
				if b := e.In("more", i); b != nil {
					x += first(b)
				}
				if p.Fail == "warn" {
					e.WarnItem(i, "%g is odd", x)
					e.Warn("a pile of %d", e.Len())
				}
				e.Put("maps", i, big(x))
				l.count("mix", 1)
			}
			return nil
		},
	})
}

// hostMix is mix on host slots.
func (l *lab) hostMix() stages.Stage {
	s := l.mix()
	s.Name, s.Device = "lab/hostmix", false
	return s
}

// pairs pairs the items of two ports by id, then by origin, and shows no name.
func (l *lab) pairs() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/pairs", Doc: "pairs", Version: 1, Relation: stages.Whole,
		Inputs:  []stages.Port{{Name: "left", Type: stages.Images}, {Name: "right", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "text", Type: stages.Text}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			var b strings.Builder
			left, right := e.Ports["left"][0], e.Ports["right"][0]
			for i := range left.Items.Len() {
				x, _ := left.Items.At(i)
				for k := range right.Items.Len() {
					y, _ := right.Items.At(k)
					if x.ID != y.ID && x.ID != y.Origin {
						continue
					}
					p, err := left.Load(i)
					if err != nil {
						return err
					}
					q, err := right.Load(k)
					if err != nil {
						return err
					}
					fmt.Fprintf(&b, "%g-%g ", first(p), first(q))
				}
			}
			e.Set("text", []byte(b.String()))
			l.count("pairs", 1)
			return nil
		},
	})
}

// tag writes ids into its payloads.
func (l *lab) tag() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/tag", Doc: "ids", Version: 1, Named: true,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "labels", Type: stages.Labels}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			for i := range e.Len() {
				c := e.Calls[i]
				e.Put("labels", i, stages.Scalar(float64(c.ID[0])+1000*float64(c.Origin[len(c.Origin)-1])))
				l.count("tag", 1)
			}
			return nil
		},
	})
}

type valueParams struct {
	Text string `yaml:"text" doc:"the text"`
	Fail bool   `yaml:"fail" doc:"fail"`
}

// value is a value made of nothing.
func (l *lab) value() stages.Stage {
	return stages.New(stages.Def[valueParams]{
		Name: "lab/value", Doc: "a value", Version: 1, Relation: stages.Whole,
		Outputs: []stages.Port{{Name: "model", Type: stages.Model}, {Name: "text", Type: stages.Text}},
		Run: func(_ context.Context, p valueParams, e *stages.Env) error {
			l.count("value", 1)
			if p.Fail {
				return fmt.Errorf("told to fail")
			}
			e.Set("model", []byte(p.Text))
			e.Set("text", []byte(p.Text))
			return nil
		},
	})
}

// vote scores items by the places and lengths of the models it is given.
func (l *lab) vote() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/vote", Doc: "votes", Version: 1,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}, {Name: "models", Type: stages.Model}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			for i := range e.Len() {
				x := 0.0
				for _, d := range e.Ports["models"] {
					b, err := d.Load(0)
					if err != nil {
						return err
					}
					x = 100*x + 10*float64(len(d.Coord[0].ID)) + float64(len(b))
				}
				e.Put("scores", i, stages.Scalar(x))
				l.count("vote", 1)
			}
			return nil
		},
	})
}

// sourced reads a source for every item, or for all but one.
func (l *lab) sourced() stages.Stage {
	type params struct {
		Short bool `yaml:"short" doc:"one source too few"`
	}
	return stages.New(stages.Def[params]{
		Name: "lab/sourced", Doc: "a source per item", Version: 1,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Sources: func(p params, ids []string) (out []stages.Source, err error) {
			for _, id := range ids {
				out = append(out, stages.Source{ID: id, Note: "note of " + id})
			}
			if p.Short {
				out = out[1:]
			}
			return out, nil
		},
		Run: func(_ context.Context, _ params, e *stages.Env) error {
			for i := range e.Len() {
				e.Put("scores", i, stages.Scalar(first(e.In("images", i))+float64(len(e.Source(i).Note))))
				l.count("sourced", 1)
			}
			return nil
		},
	})
}

// stray puts what it mustn't on its ports.
func (l *lab) stray() stages.Stage {
	type params struct {
		Do string `yaml:"do" doc:"what" choices:"twins|port|drift"`
	}
	return stages.New(stages.Def[params]{
		Name: "lab/stray", Doc: "strays", Version: 1, Relation: stages.Expand, Defaults: params{Do: "twins"},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}},
		Run: func(_ context.Context, p params, e *stages.Env) error {
			for i := range e.Len() {
				switch p.Do {
				case "twins":
					e.Add("images", i, "x", big(1))
					e.Add("images", i, "x", big(2))
				case "port":
					e.Add("imgaes", i, "x", big(1))
				case "drift":
					l.drift += 0.25
					e.Add("images", i, "x", big(l.drift))
				}
			}
			return nil
		},
	})
}

// pair adds scores to maps.
func (l *lab) pair() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/pair", Doc: "maps and scores", Version: 1,
		Inputs:  []stages.Port{{Name: "maps", Type: stages.Maps}, {Name: "scores", Type: stages.Scores}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			for i := range e.Len() {
				e.Put("scores", i, stages.Scalar(first(e.In("maps", i))+number(e.In("scores", i))))
			}
			return nil
		},
	})
}

type remoteParams struct {
	By float64 `yaml:"by" doc:"factor"`
}

// remote scales items where its slot is: on a device other than the processor as l.compute does.
func (l *lab) remote() stages.Stage {
	return stages.New(stages.Def[remoteParams]{
		Name: "lab/remote", Doc: "items scaled on a device", Version: 1, Device: true, Tolerance: 1e-3,
		Defaults: remoteParams{By: 2},
		Inputs:   []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs:  []stages.Port{{Name: "maps", Type: stages.Maps}},
		Run: func(_ context.Context, p remoteParams, e *stages.Env) error {
			for i := range e.Len() {
				b, err := l.remotely(e.Slot.Device(), e.Calls[i].ID, p.By*first(e.In("images", i)))
				if err != nil {
					return err
				}
				e.Put("maps", i, b)
			}
			return nil
		},
	})
}

func (l *lab) remotely(d stages.Device, id string, x float64) ([]byte, error) {
	l.count("on "+d.Class, 1)
	l.mu.Lock()
	l.saw = append(l.saw, d.Class+" "+id)
	if d.Class == "cpu" && l.judging != nil {
		close(l.judging)
		l.judging = nil
	}
	l.mu.Unlock()
	if d.Class == "cpu" {
		time.Sleep(l.slowly)
		return big(x), nil
	}
	return l.compute(d, id, x)
}

// remoteAll is remote for a stage that wants all items at once.
func (l *lab) remoteAll() stages.Stage {
	return stages.New(stages.Def[remoteParams]{
		Name: "lab/remoteall", Doc: "items scaled on a device", Version: 1, Device: true,
		Relation: stages.Whole, Defaults: remoteParams{By: 2},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Run: func(ctx context.Context, p remoteParams, e *stages.Env) error {
			for m, err := range e.Ports["images"][0].All(ctx) {
				if err != nil {
					return err
				}
				b, err := l.remotely(e.Slot.Device(), m.ID, p.By*first(m.Data))
				if err != nil {
					return err
				}
				e.Emit("maps", m.ID, m.Origin, b)
			}
			return nil
		},
	})
}

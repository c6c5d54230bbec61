package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

type sourceParams struct {
	Fail string `yaml:"fail" doc:"id of an item that can't be read"`
	Axis string `yaml:"axis" doc:"makes cells differ" key:"-"`
}

// source makes an image of every item that the lab lists.
func (l *lab) source() stages.Stage {
	return stages.New(stages.Def[sourceParams]{
		Name: "lab/source", Doc: "items", Version: 1,
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}, {Name: "labels", Type: stages.Labels}},
		Sources: func(p sourceParams, _ []string) ([]stages.Source, error) {
			return sourcesOf(l.items), nil
		},
		Run: func(_ context.Context, p sourceParams, e *stages.Env) error {
			for i := range e.Len() {
				s := e.Source(i)
				if s.ID == p.Fail {
					return fmt.Errorf("item %q is broken", s.ID)
				}
				var x float64
				for _, c := range s.Note {
					x = 10*x + float64(c-'0')
				}
				e.Put("images", i, big(x))
				e.Put("labels", i, stages.Scalar(x))
				l.count("source", 1)
			}
			return nil
		},
	})
}

type scaleParams struct {
	By   float64 `yaml:"by" doc:"factor"`
	Fail bool    `yaml:"fail" doc:"fail"`
}

func (l *lab) scale() stages.Stage {
	return stages.New(stages.Def[scaleParams]{
		Name: "lab/scale", Doc: "scaled items", Version: 1, Device: true, Defaults: scaleParams{By: 2},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Facts: func(p scaleParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"maps": {"by": fmt.Sprint(p.By)}}, nil
		},
		Run: func(ctx context.Context, p scaleParams, e *stages.Env) error {
			if p.Fail {
				return errors.New("told to fail")
			}
			for i := range e.Len() {
				if err := ctx.Err(); err != nil {
					return err
				}
				e.Put("maps", i, big(p.By*first(e.In("images", i))))
				l.count("scale", 1)
				l.count("threads", e.Slot.Device().Threads)
			}
			return nil
		},
	})
}

type addParams struct {
	Plus float64 `yaml:"plus" doc:"offset"`
}

// add joins two inputs.
func (l *lab) add() stages.Stage {
	return stages.New(stages.Def[addParams]{
		Name: "lab/add", Doc: "sums of two inputs", Version: 1,
		Inputs: []stages.Port{{Name: "maps", Type: stages.Maps},
			{Name: "images", Type: stages.Images, Optional: true}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, p addParams, e *stages.Env) error {
			for i := range e.Len() {
				x := first(e.In("maps", i)) + p.Plus
				if b := e.In("images", i); b != nil {
					x += first(b)
				}
				e.Put("scores", i, stages.Scalar(x))
				l.count("add", 1)
			}
			return nil
		},
	})
}

type expandParams struct{}

// expand makes x mod 3 children of an item.
func (l *lab) expand() stages.Stage {
	return stages.New(stages.Def[expandParams]{
		Name: "lab/expand", Doc: "children", Version: 1, Relation: stages.Expand,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}},
		Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
			for i := range e.Len() {
				x := first(e.In("images", i))
				for k := range int(x) % 3 {
					e.Add("images", i, fmt.Sprint(k), big(1000*x+float64(k)))
				}
				l.count("expand", 1)
			}
			return nil
		},
	})
}

// sum writes everything it sees into a text.
func (l *lab) sum() stages.Stage {
	return stages.New(stages.Def[expandParams]{
		Name: "lab/sum", Doc: "a text of all scores", Version: 1, Relation: stages.Whole,
		Inputs: []stages.Port{{Name: "scores", Type: stages.Scores},
			{Name: "maps", Type: stages.Maps, Optional: true}},
		Outputs: []stages.Port{{Name: "text", Type: stages.Text}},
		Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
			var b strings.Builder
			for _, d := range e.Ports["scores"] {
				b.WriteString(plan.CoordString(d.Coord) + ":")
				for i := range d.Items.Len() {
					p, err := d.Load(i)
					if err != nil {
						return err
					}
					fmt.Fprintf(&b, " %g", number(p))
				}
				b.WriteString("\n")
			}
			for _, d := range e.Ports["maps"] {
				p, err := d.Load(0)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, "map %g\n", first(p))
			}
			e.Set("text", []byte(b.String()))
			e.SetFacts("text", stages.Facts{"ext": "md"})
			l.count("sum", 1)
			return nil
		},
	})
}

type fileParams struct {
	Path string `yaml:"path" doc:"a file" file:"read"`
}

// file is a value made of a file.
func (l *lab) file() stages.Stage {
	return stages.New(stages.Def[fileParams]{
		Name: "lab/file", Doc: "a file's bytes", Version: 1, Relation: stages.Whole,
		Outputs: []stages.Port{{Name: "model", Type: stages.Model}},
		Sources: func(p fileParams, _ []string) ([]stages.Source, error) {
			return []stages.Source{{ID: "file", File: p.Path}}, nil
		},
		Run: func(_ context.Context, _ fileParams, e *stages.Env) error {
			b, err := os.ReadFile(e.Read[0].File)
			e.Set("model", b)
			l.count("file", 1)
			return err
		},
	})
}

type wildParams struct {
	Do string `yaml:"do" doc:"what to do" choices:"oom|panic|less|program"`
}

// wild misbehaves as it is told.
func (l *lab) wild() stages.Stage {
	return stages.New(stages.Def[wildParams]{
		Name: "lab/wild", Doc: "misbehaves", Version: 1, Device: true, Defaults: wildParams{Do: "program"},
		Inputs: []stages.Port{{Name: "images", Type: stages.Images},
			{Name: "model", Type: stages.Model, Optional: true}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Program: func(_ context.Context, p wildParams, e *stages.Env) (stages.Digest, error) {
			l.count("compiled", 1)
			b, err := e.Value("model")
			return stages.Sum(append([]byte(l.rule),
				b[:min(len(b), 1)]...)), err // only the first byte matters to it
		},
		Run: func(_ context.Context, p wildParams, e *stages.Env) error {
			switch p.Do {
			case "oom":
				if e.Batch > 2 {
					return fmt.Errorf("device: %w", stages.ErrOutOfMemory)
				}
			case "panic":
				panic("told to")
			case "less":
				return nil
			}
			for i := range e.Len() {
				e.Put("maps", i, e.In("images", i))
				l.count("wild", 1)
			}
			return nil
		},
	})
}

package pipeline_test

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// folds returns the stages that make draws and fold them.
func (l *lab) folds() []stages.Stage {
	return []stages.Stage{l.draw(), l.widen(), l.fold(), l.foldNames()}
}

// draw adds to every image a number that depends on the draw.
func (l *lab) draw() stages.Stage {
	type params struct {
		Draw string `yaml:"draw" doc:"which draw"`
		Fail string `yaml:"fail" doc:"the draw that fails"`
		Size int    `yaml:"size" doc:"numbers of an image"`
	}
	return stages.New(stages.Def[params]{
		Name: "lab/draw", Doc: "noisy images", Version: 1, Seeded: true, Defaults: params{Size: 600},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}},
		Run: func(_ context.Context, p params, e *stages.Env) error {
			if p.Fail != "" && p.Fail == p.Draw {
				return fmt.Errorf("draw %s fails", p.Draw)
			}
			for i := range e.Len() {
				v := make([]float64, p.Size)
				v[0] = first(e.In("images", i)) + e.Rand(p.Draw, i).Float64()
				e.Put("images", i, stages.NewTensor(v, p.Size).Encode())
				l.count("draw", 1)
			}
			return nil
		},
	})
}

// widen is scale for images of any size.
func (l *lab) widen() stages.Stage {
	type params struct {
		By   float64 `yaml:"by" doc:"factor"`
		Size int     `yaml:"size" doc:"numbers of a map"`
	}
	return stages.New(stages.Def[params]{
		Name: "lab/widen", Doc: "scaled items", Version: 1, Device: true,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "maps", Type: stages.Maps}},
		Run: func(_ context.Context, p params, e *stages.Env) error {
			for i := range e.Len() {
				v := make([]float32, p.Size)
				v[0] = float32(p.By * first(e.In("images", i)))
				e.Put("maps", i, stages.NewTensor(v, p.Size).Encode())
				l.count("widen", 1)
			}
			return nil
		},
	})
}

// fold writes the members of each call, in their order, as digits of a number: a hash of what it saw.
func (l *lab) fold() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/fold", Doc: "folds of draws", Version: 1,
		Inputs: []stages.Port{{Name: "maps", Type: stages.Maps, Over: true},
			{Name: "images", Type: stages.Images, Over: true, Optional: true},
			{Name: "original", Type: stages.Images, Optional: true}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			ports := []string{"maps"}
			if e.Wired("images") {
				ports = append(ports, "images")
			}
			for i := range e.Len() {
				x, n := 0.0, 0
				for m, err := range e.All(i, ports...) {
					if err != nil {
						return err
					}
					if l.folding != nil {
						l.folding()
					}
					x = 1.5*x + first(m[0].Data) + float64(len(plan.CoordString(m[0].Coord)))
					if len(m) > 1 {
						x -= first(m[1].Data)
					}
					n++
				}
				if b := e.In("original", i); b != nil {
					x += first(b)
				}
				e.Put("scores", i, stages.Scalar(x+1e6*float64(n)))
				l.count("fold", 1)
			}
			return nil
		},
	})
}

// foldNames writes the names of what belongs to each child.
func (l *lab) foldNames() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/foldnames", Doc: "members by origin", Version: 1, Named: true,
		Inputs: []stages.Port{{Name: "children", Type: stages.Images},
			{Name: "draws", Type: stages.Images, Over: true}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			for i := range e.Len() {
				line := e.Calls[i].ID + ":"
				for m, err := range e.All(i, "draws") {
					if err != nil {
						return err
					}
					line += fmt.Sprintf(" %s/%s", m[0].Coord[0].ID, m[0].ID)
				}
				l.mu.Lock()
				l.saw = append(l.saw, line)
				l.mu.Unlock()
				e.Put("scores", i, stages.Scalar(float64(len(line))))
			}
			return nil
		},
	})
}

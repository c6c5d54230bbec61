// Package fuse has the stages that combine many rankings into one: fuse/meta-rank (metarank.go), with its
// tables (tables.go) and its text (answer.go), which begins with whether there is an answer (verdict.go), and
// fuse/rankings (rankings.go), which compares it with other fusions. contest.go says which cases and methods
// take part, and exact.go how sure float32's order is where it was estimated.
package fuse

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// Params are the parameters of Meta-Rank's fusion.
type Params struct {
	Rank      string  `yaml:"rank" axis:"scores" doc:"the axis to compare, usually method; over must collapse it"`
	Smoothing string  `yaml:"smoothing" doc:"what keeps a method that always wins finite: clip bounds the share of cases won, laplace counts one more win and one more loss" choices:"clip|laplace"`
	Clip      float64 `yaml:"clip" doc:"with smoothing: clip, the share of cases won is clipped to [clip, 1-clip]" min:"1e-9" max:"0.25"`
	scores.Exactly
}

func defaults() Params {
	return Params{Smoothing: "clip", Clip: 1e-3, Exactly: scores.UsualExactly}
}

// Validate requires the axis, and refuses other precisions than a reference's.
func (p Params) Validate() error {
	if p.Rank == "" {
		return stages.BadField("rank", "rank is required: name the axis to compare")
	}
	return p.Exactly.Validate()
}

func (p Params) smoothing() stat.Smoothing {
	if p.Smoothing == "laplace" {
		return stat.Laplace
	}
	return stat.Clip(p.Clip)
}

package registry

import (
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/fuse"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/mosaic"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/report"
	"github.com/runexp/runexp/stages/score"
)

// Builtin returns every stage of the program. A new stage is one line here, in
// sorted order; a test names the line that's missing.
func Builtin() *Set {
	return New(
		attribute.Constant,
		attribute.Deconvolution,
		attribute.External,
		attribute.GradCAM,
		attribute.GuidedBackprop,
		attribute.GuidedGradCAM,
		attribute.InputXGradient,
		attribute.IntegratedGradients,
		attribute.Occlusion,
		attribute.RISE,
		attribute.Random,
		attribute.Saliency,
		attribute.SmoothGrad,
		dataset.Folder,
		dataset.Shapes,
		fuse.MetaRank,
		maps.Rank,
		model.ONNX,
		model.Predict,
		mosaic.Grid,
		perturb.Ablation,
		perturb.Deletion,
		perturb.Insertion,
		report.Curves,
		report.Leaderboard,
		report.Sheet,
		report.Table,
		score.AUC,
		score.GridPointing,
		score.MAS,
		score.MassAccuracy,
		score.RISE,
		score.Top1,
	)
}

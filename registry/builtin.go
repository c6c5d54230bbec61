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

// Builtin returns every stage of the program. A new stage is one line here, in sorted order;
// TestBuiltinIsComplete names the line that is missing.
func Builtin() *Set {
	return New(
		attribute.AGI,
		attribute.AblationCAM,
		attribute.AbsLRP,
		attribute.AttentionRollout,
		attribute.CLRP,
		attribute.CRAP,
		attribute.Constant,
		attribute.Deconvolution,
		attribute.DeepLIFT,
		attribute.External,
		attribute.GradCAM,
		attribute.GradCAMPlusPlus,
		attribute.GuidedBackprop,
		attribute.GuidedGradCAM,
		attribute.GuidedIG,
		attribute.HiResCAM,
		attribute.InputXGradient,
		attribute.IntegratedGradients,
		attribute.LRPAlphaBeta,
		attribute.LRPComposite,
		attribute.LRPConservation,
		attribute.LRPEpsilon,
		attribute.LRPGamma,
		attribute.LRPZPlus,
		attribute.LayerCAM,
		attribute.LeftIG,
		attribute.Occlusion,
		attribute.RAP,
		attribute.RISE,
		attribute.Random,
		attribute.RawAttention,
		attribute.Saliency,
		attribute.ScoreCAM,
		attribute.SmoothGrad,
		attribute.TIBAV,
		attribute.TransitionAttention,
		attribute.VarGrad,
		dataset.Folder,
		dataset.Shapes,
		fuse.MetaRank,
		maps.Noise,
		maps.Offset,
		maps.Rank,
		maps.Reduce,
		maps.Smooth,
		maps.Upsample,
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
		score.ABPC,
		score.AOPC,
		score.AUC,
		score.Delta,
		score.GridPointing,
		score.MAS,
		score.MassAccuracy,
		score.RISE,
		score.ROAD,
		score.Top1,
	)
}

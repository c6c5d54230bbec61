package attribute

import (
	"context"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// EigenCAMParams are the parameters of [EigenCAM].
type EigenCAMParams struct {
	CAM
	Variant string `yaml:"variant" doc:"paper takes the layer's values as they are; the code of Gildenblat et al. subtracts each channel's mean first" choices:"paper|official-gildenblat"`
}

// EigenCAM projects a layer on its first principal component.
var EigenCAM = classFreeMethod(stages.Def[EigenCAMParams]{
	Name: "attribute/eigen-cam",
	Doc: `a layer, projected on its first principal component

max(A·v, 0), with the layer's values A, one row for each place and one column for each
channel, and v the first right singular vector of A. A singular vector has no sign: the
map's is the one in which its largest magnitude is positive, Chung and Ying, "Seg-Eigen-CAM:
Eigen-Value-Based Visual Explanations for Semantic Segmentation Models", Applied Sciences
2025, equation 13. It needs no gradient, and is the same for all classes. The map is made at
the layer and enlarged to the image's size; it isn't normalised. Muhammad and Yeasin,
"Eigen-CAM: Class Activation Map using Principal Components", IJCNN 2020.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "1"},
	Variants: []stages.Variant{{
		Item: "centring and sign", Default: "paper",
		Differs: "official-gildenblat subtracts each channel's mean before the decomposition, which the " +
			"paper doesn't; the paper and EigenCAM in that code leave the sign to the library that " +
			"decomposes, where both variants have the rule of SegEigenCAM; that code also stretches each " +
			"map to [0,1], which no variant does",
		Golden: "cams",
	}},
	Defaults: EigenCAMParams{CAM: defaultCAM(), Variant: "paper"},
})

// Validate refuses what [CAM] refuses, and the input, whose map would be one of colours, without the model.
func (p EigenCAMParams) Validate() error {
	if p.Layer == "input" {
		return stages.BadField("layer", "layer input: the principal component of an image's colours says "+
			"nothing about the model; take an inner layer, such as final")
	}
	return p.CAM.Validate()
}

func (p EigenCAMParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	return p.eachLayer(ctx, e, n, p.Joined, p.Upsample,
		func(ctx context.Context, one Tapped, put func(int, layerMap)) error {
			return one.activations(ctx, e, n, func(at layerValue) error {
				cam := at.planes.projected(p.Variant == "official-gildenblat")
				if p.ReLU {
					for k, v := range cam {
						cam[k] = max(v, 0)
					}
				}
				put(at.item, layerMap{cam, at.planes})
				return nil
			})
		})
}

// projected returns each place's coordinate along the first principal component, signed so that the largest
// magnitude is positive. With centred, each channel's mean is subtracted first.
func (p planes) projected(centred bool) []float64 {
	rows := make([][]float64, p.channels)
	for c := range rows {
		rows[c] = slices.Clone(p.channel(c))
		if !centred {
			continue
		}
		sum := 0.0
		for _, v := range rows[c] {
			sum += v
		}
		for k := range rows[c] {
			rows[c][k] -= sum / float64(p.pixels())
		}
	}
	out := make([]float64, p.pixels())
	for c, weight := range firstLeft(rows) {
		for k, v := range rows[c] {
			out[k] += float64(weight * v)
		}
	}
	least, most := slices.Min(out), slices.Max(out)
	if -least > most || -least == most && firstSign(out) < 0 {
		for k := range out {
			out[k] = -out[k]
		}
	}
	return out
}

// firstSign returns the first value that isn't 0.
func firstSign(values []float64) float64 {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

// firstLeft returns the first left singular vector of a matrix, of either sign.
func firstLeft(rows [][]float64) []float64 {
	if len(rows) <= len(rows[0]) {
		return principal(products(rows))
	}
	columns := make([][]float64, len(rows[0]))
	for k := range columns {
		for _, row := range rows {
			columns[k] = append(columns[k], row[k])
		}
	}
	right := principal(products(columns))
	out := make([]float64, len(rows))
	for c, row := range rows {
		out[c] = dot(row, right)
	}
	normalise(out)
	return out
}

// products returns the matrix of the rows' inner products.
func products(rows [][]float64) [][]float64 {
	out := make([][]float64, len(rows))
	for i := range rows {
		out[i] = make([]float64, len(rows))
		for j := range i + 1 {
			out[i][j] = dot(rows[i], rows[j])
			out[j][i] = out[i][j]
		}
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for k, v := range a {
		sum += float64(v * b[k])
	}
	return sum
}

// normalise divides a vector by its length, unless that is 0.
func normalise(v []float64) (length float64) {
	if length = math.Sqrt(dot(v, v)); length > 0 {
		for k := range v {
			v[k] /= length
		}
	}
	return length
}

func (p EigenCAMParams) whyUncompiled() string {
	return "ONNX has no operator that decomposes a matrix into its singular vectors"
}

// Package experiments holds the sample experiment that the command carries.
package experiments

import "embed"

// Quickstart has quickstart.yaml and the nets that it reads, below the folder of this package.
//
//go:embed quickstart.yaml quickstart/vgg.onnx quickstart/vgg-bn.onnx
//go:embed quickstart/resnet.onnx quickstart/vit.onnx
var Quickstart embed.FS

// Package model has the stages that load and run classifiers. model/onnx reads a file (onnx.go): its input
// (size.go, integers.go), its batch (fixed_batch.go), its head (head.go), verified by running it (probe.go).
// model/predict runs it on images (predict.go). The command inspects files (inspect.go, describe.go), tries
// presets on labelled images (accuracy.go) and methods on the model (trial.go); runtime.go gives it access to
// ONNX Runtime.
package model

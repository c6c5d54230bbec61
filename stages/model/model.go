// Package model has the stages that load and run classifiers. model/onnx reads a file (onnx.go): its input
// (layout.go, size.go, integers.go), its batch (probe.go), and its statements about images and classes
// (declared.go) in its metadata (declaration.go, note_readers.go, literal.go). It is run on several images
// (look.go), and its outputs (outputs.go) are judged (reading.go) by the graph and the answers
// (finding.go): by the properties that the graph ensures for its values (guarantee.go,
// guarantee_arithmetic.go, guarantee_rules.go) after the last layers (tail.go), by the operators at its end
// (head.go), and by the values that give the answers (match.go). One output becomes two classes (sides.go).
//
// model/predict runs it on images (predict.go); other stages derive another model from it (rewrite.go,
// grids.go). model/units makes nets whose true attribution is known (units.go). The command inspects files
// (inspect.go, describe.go), tries methods on the model (trial.go), and weighs hypotheses of how it is fed
// (feeds.go) by labelled images (accuracy.go, evidence.go).
package model

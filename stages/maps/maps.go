// Package maps has the stages that transform attribution maps. Each reads the map of an item as a field
// (field.go), changes it, and writes it in the precision it had: smooth.go, noise.go, offset.go, upsample.go,
// reduce.go, positive.go, sign.go; mean.go averages several. rank.go orders the pixels instead, for the
// stages that perturb images.
package maps
